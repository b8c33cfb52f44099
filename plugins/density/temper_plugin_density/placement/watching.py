"""Keeps a ledger up to date with two watches of the API server: nodes and bound pods.

Objects are parsed on the watches' threads. The ledger is updated on the event loop's thread.
"""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from temper_core import InputError
from temper_kube.access import Access
from temper_kube.bounded_warnings import BoundedWarnings
from temper_kube.list_pages import PAGE, Json
from temper_kube.list_watch import ListWatch, Query
from temper_kube.watch_status import WatchStatus
from temper_plugin_density.placement.asking import BoundPod, PodReader, uid_of
from temper_plugin_density.placement.facts import NodeFacts, read_node
from temper_plugin_density.placement.ledger import Ledger

NODES = Query("/api/v1/nodes", page=PAGE)
PODS = Query(
    "/api/v1/pods",
    fields="spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded",
    page=PAGE,
)
"""Pods that are bound to a node and have not terminated."""

Call = Callable[..., object]
"""Calls a function of the ledger with its arguments on the ledger's thread."""

"""Malformed pods that are logged. All are counted."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def _at_once(function: Call, *arguments: object) -> None:
    function(*arguments)


class NodeFollower:
    """Records nodes in the ledger."""

    def __init__(self, ledger: Ledger, call: Call = _at_once) -> None:
        self._ledger = ledger
        self._call = call

    def replaced(self, items: Iterable[Json]) -> None:
        """Replace all nodes."""
        nodes: list[NodeFacts] = [facts for item in items if (facts := read_node(item))]
        self._call(self._ledger.replace_nodes, nodes)

    def changed(self, kind: str, item: Json) -> None:
        """Record a node that was added, modified or deleted."""
        facts = read_node(item)
        if facts is not None and kind == "DELETED":
            self._call(self._ledger.drop_node, facts.name)
        elif facts is not None:
            self._call(self._ledger.put_node, facts)

    def status_changed(self) -> None:
        """Nothing depends on whether the watch is up."""


class PodFollower:
    """Records bound pods in the ledger. Malformed objects are counted and left out."""

    def __init__(self, ledger: Ledger, reader: PodReader, call: Call = _at_once) -> None:
        self._ledger = ledger
        self._reader = reader
        self._call = call
        self._warnings = BoundedWarnings()
        self.unreadable = 0

    def replaced(self, items: Iterable[Json]) -> None:
        """Replace all pods."""
        pods: list[BoundPod] = [pod for item in items if (pod := self._read(item))]
        self._call(self._ledger.replace_pods, pods)

    def changed(self, kind: str, item: Json) -> None:
        """Record a pod that was added, modified or deleted."""
        pod = None if kind == "DELETED" else self._read(item)
        if pod is None:
            self._call(self._ledger.drop_pod, uid_of(item))
        else:
            self._call(self._ledger.put_pod, pod)

    def status_changed(self) -> None:
        """Nothing depends on whether the watch is up."""

    def _read(self, item: Json) -> BoundPod | None:
        def warn(event: str, reason: str) -> None:
            self.unreadable += 1
            metadata = item.get("metadata")
            namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
            if self._warnings.allows(namespace):
                log.warning(event, uid=uid_of(item), reason=reason)

        try:
            return self._reader.bound(item, lambda doubt: warn("quantity_not_read", doubt))
        except InputError as error:
            warn("pod_not_read", str(error))
            return None


class Watches:
    """Both watches, from ``start`` to ``close``."""

    def __init__(self, ledger: Ledger, reader: PodReader) -> None:
        self.nodes, self.pods = WatchStatus("nodes"), WatchStatus("pods")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pod_follower = PodFollower(ledger, reader, self._call)
        self._node_follower = NodeFollower(ledger, self._call)
        self._running: list[ListWatch] = []

    @property
    def unreadable(self) -> int:
        """The number of malformed pods so far."""
        return self._pod_follower.unreadable

    def start(self, access: Access) -> None:
        """Begin. The ledger is updated in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._running = [
            ListWatch(access, query, follower, status, logs_each_reason=True)
            for query, follower, status in (
                (NODES, self._node_follower, self.nodes),
                (PODS, self._pod_follower, self.pods),
            )
        ]
        for watch in self._running:
            watch.start()

    async def close(self) -> None:
        """End both watches."""
        await asyncio.gather(*(asyncio.to_thread(watch.close) for watch in self._running))

    def _call(self, function: Call, *arguments: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(function, *arguments)
