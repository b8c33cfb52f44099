"""The agent's own Node object: its annotations as they are, and who has to hear of them."""

import threading
from collections.abc import Callable, Iterable, Mapping

import structlog
from attrs import field, frozen

from temper_kube.list_pages import Json

NODES = "/api/v1/nodes"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class NodeState:
    """The node as last seen. ``uid`` is empty until it has been."""

    uid: str = ""
    annotations: Mapping[str, str] = field(factory=dict)


class NodeWatch:
    """Follows one node. *obey* is given its annotations, on the watching thread, at each change.

    *told* hears of every change after that.
    """

    def __init__(
        self,
        name: str,
        obey: Callable[[Mapping[str, str]], None],
        told: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._obey = obey
        self._told = told
        self._state = NodeState()
        self._lock = threading.Lock()

    def now(self) -> NodeState:
        """Return the node as last seen."""
        with self._lock:
            return self._state

    def replaced(self, items: Iterable[Json]) -> None:
        """Know the node. Where there is none, what it asked for last stands."""
        found = list(items)
        for item in found:
            self._saw(item)
        if not found:
            log.warning("node_not_found", node=self._name)

    def changed(self, kind: str, item: Json) -> None:
        """Know that the node changed. One that is deleted keeps what it asked for last."""
        if kind != "DELETED":
            self._saw(item)

    def status_changed(self) -> None:
        """Nothing hangs on whether the watch is up."""

    def _saw(self, item: Json) -> None:
        metadata = item.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") != self._name:
            return
        annotations = metadata.get("annotations") or {}
        with self._lock:
            self._state = NodeState(str(metadata.get("uid", "")), annotations)
        self._obey(annotations)
        self._told()
