"""The agent's own Node object: its annotations, and the callbacks for their changes."""

import threading
from collections.abc import Callable, Iterable, Mapping

import structlog
from attrs import field, frozen

from temper_kube.list_pages import Json, require_object

NODES = "/api/v1/nodes"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class NodeState:
    """The last known state of the node. ``uid`` is empty before the first one."""

    uid: str = ""
    annotations: Mapping[str, str] = field(factory=dict)


class NodeWatch:
    """Follows one node. *obey* is called with its state on each change.

    *changed* is called after that. Both run on the watching thread. If the object cannot be read,
    the last annotations stay in force.
    """

    def __init__(
        self,
        name: str,
        obey: Callable[[NodeState], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._obey = obey
        self._changed = changed
        self._state = NodeState()
        self._lock = threading.Lock()

    def now(self) -> NodeState:
        """Return the last known state of the node."""
        with self._lock:
            return self._state

    def replaced(self, items: Iterable[Json]) -> None:
        """Record the node. If there is none, its last annotations stay in force."""
        nodes = list(items)
        for item in nodes:
            self._saw(item)
        if not nodes:
            log.warning("node_not_found", node=self._name)

    def changed(self, kind: str, item: Json) -> None:
        """Record a change of the node. After a deletion its last annotations stay in force."""
        if kind != "DELETED":
            self._saw(item)

    def status_changed(self) -> None:
        """Nothing depends on whether the watch is up."""

    def _saw(self, item: Json) -> None:
        metadata = item.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") != self._name:
            return
        try:
            require_object(item)
        except TypeError as error:
            log.warning("node_unreadable", node=self._name, reason=str(error))
            return
        state = NodeState(str(metadata.get("uid", "")), metadata.get("annotations") or {})
        with self._lock:
            self._state = state
        self._obey(state)
        self._changed()
