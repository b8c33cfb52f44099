"""The agent's own Node object: its annotations, and the callbacks for their changes."""

import threading
import time
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
    or the cluster does not have it, the last annotations stay in force.
    """

    def __init__(
        self,
        name: str,
        obey: Callable[[NodeState], None],
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._obey = obey
        self._changed = changed
        self._clock = clock
        self._absent_since: float | None = None
        self._state = NodeState()
        self._lock = threading.Lock()

    def now(self) -> NodeState:
        """Return the last known state of the node."""
        with self._lock:
            return self._state

    @property
    def absent_s(self) -> float:
        """For how many seconds the API server has known no such node. 0 while it knows it."""
        with self._lock:
            since = self._absent_since
        return 0.0 if since is None else self._clock() - since

    def replaced(self, items: Iterable[Json]) -> None:
        """Record the node, or that there is none."""
        nodes = [item for item in items if self._is_own(item)]
        self._found(is_there=bool(nodes))
        for item in nodes:
            self._saw(item)

    def changed(self, kind: str, item: Json) -> None:
        """Record a change of the node, or its deletion."""
        if not self._is_own(item):
            return
        self._found(is_there=kind != "DELETED")
        if kind != "DELETED":
            self._saw(item)

    def status_changed(self) -> None:
        """Nothing depends on whether the watch is up."""

    def _is_own(self, item: Json) -> bool:
        metadata = item.get("metadata")
        return isinstance(metadata, dict) and metadata.get("name") == self._name

    def _found(self, *, is_there: bool) -> None:
        was_there = self._absent_since is None
        if is_there == was_there:
            return
        with self._lock:
            self._absent_since = None if is_there else self._clock()
        if is_there:
            log.info("node_found", node=self._name)
        else:
            log.warning("node_not_found", node=self._name)

    def _saw(self, item: Json) -> None:
        metadata = item["metadata"]
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
