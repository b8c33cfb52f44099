"""The agent's own Node object: its annotations as they are, and the kill switch among them."""

import threading
from collections.abc import Callable, Mapping, Sequence

import structlog
from attrs import field, frozen

from temper_plugin_kubernetes.connection import Json

NODES = "/api/v1/nodes"
KILL_SWITCH = "temper.codes/safe-mode-requested"
REFUSALS = ("", "false", "no", "off", "0")
"""What counts as not asking; whatever else is written there errs on the safe side."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class NodeState:
    """The node as last seen; ``uid`` is empty until it has been."""

    uid: str = ""
    annotations: Mapping[str, str] = field(factory=dict)


class NodeWatch:
    """Follows one node; asks for safe mode, and releases it, on the watching thread.

    *request* and *release* are called on each change of the wish and once at the beginning, since
    a request may be remembered that was withdrawn while no agent ran. ``told`` hears of every
    change.
    """

    def __init__(
        self,
        name: str,
        request: Callable[[str], None],
        release: Callable[[], None],
        told: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._request = request
        self._release = release
        self._told = told
        self._wish: str | None = None
        self._state = NodeState()
        self._lock = threading.Lock()

    def now(self) -> NodeState:
        """Return the node as last seen."""
        with self._lock:
            return self._state

    def replaced(self, items: Sequence[Json]) -> None:
        """Know the node; where there is none, what it asked for last stands."""
        for item in items:
            self._saw(item)
        if not items:
            log.warning("node_not_found", node=self._name)

    def changed(self, kind: str, item: Json) -> None:
        """Know that the node changed; one that is deleted keeps what it asked for last."""
        if kind != "DELETED":
            self._saw(item)

    def wavered(self) -> None:
        """Nothing hangs on whether the watch is up."""

    def _saw(self, item: Json) -> None:
        metadata = item.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") != self._name:
            return
        annotations = metadata.get("annotations") or {}
        with self._lock:
            self._state = NodeState(str(metadata.get("uid", "")), annotations)
        self._obey(str(annotations.get(KILL_SWITCH, "")))
        self._told()

    def _obey(self, value: str) -> None:
        wish = "" if value.strip().lower() in REFUSALS else value
        if wish == self._wish:
            return
        self._wish = wish
        if wish:
            self._request(f"the node annotation {KILL_SWITCH}={wish[:100]} is set")
        else:
            self._release()
