"""Keeps a ledger up to date: what two watches of the API server say of nodes and of bound pods."""

import asyncio
from collections.abc import Sequence

import structlog
from lightkube.core.async_client import AsyncClient

from temper_core import InputError
from temper_plugin_density.placement.asking import BoundPod, PodReader, uid_of
from temper_plugin_density.placement.facts import NodeFacts, read_node
from temper_plugin_density.placement.following import (
    Follower,
    Following,
    Item,
    Lookout,
    Nodes,
    Pods,
)
from temper_plugin_density.placement.ledger import Ledger

CANCEL_AGAIN_S = 0.5

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NodeFollower:
    """Writes down what nodes say."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def read(self, item: Item) -> NodeFacts | None:
        """Read what a node says."""
        return read_node(item)

    def replaced(self, read: Sequence[NodeFacts]) -> None:
        """Know all nodes."""
        self._ledger.replace_nodes(read)

    def changed(self, kind: str, item: Item) -> None:
        """Know a node that came, changed or went."""
        facts = self.read(item)
        if facts is not None and kind == "DELETED":
            self._ledger.drop_node(facts.name)
        elif facts is not None:
            self._ledger.put_node(facts)


class PodFollower:
    """Writes down what bound pods ask for; one that cannot be read is counted, and left out."""

    def __init__(self, ledger: Ledger, reader: PodReader) -> None:
        self._ledger = ledger
        self._reader = reader
        self.unreadable = 0

    def read(self, item: Item) -> BoundPod | None:
        """Read what a pod asks of its node."""
        try:
            return self._reader.bound(item)
        except InputError as error:
            self.unreadable += 1
            log.warning("pod_not_read", uid=uid_of(item), reason=str(error))
            return None

    def replaced(self, read: Sequence[BoundPod]) -> None:
        """Know all pods."""
        self._ledger.replace_pods(read)

    def changed(self, kind: str, item: Item) -> None:
        """Know a pod that came, changed or went."""
        pod = None if kind == "DELETED" else self.read(item)
        if pod is None:
            self._ledger.drop_pod(uid_of(item))
        else:
            self._ledger.put_pod(pod)


class Watch:
    """Both watches, from ``start`` to ``close``."""

    def __init__(self, ledger: Ledger, reader: PodReader) -> None:
        self.nodes, self.pods = Lookout("nodes"), Lookout("pods")
        self._pod_follower = PodFollower(ledger, reader)
        self._followers: dict[type, tuple[Follower, Lookout]] = {
            Nodes: (NodeFollower(ledger), self.nodes),
            Pods: (self._pod_follower, self.pods),
        }
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def has_listed(self) -> bool:
        """Whether everything was heard of once; it never becomes false again."""
        return self.nodes.has_listed and self.pods.has_listed

    @property
    def unreadable(self) -> int:
        """How many times a pod could not be read."""
        return self._pod_follower.unreadable

    def start(self, client: AsyncClient) -> None:
        """Begin, in the running event loop."""
        for resource, (follower, lookout) in self._followers.items():
            following = Following(client, resource, follower, lookout)
            self._tasks.append(asyncio.create_task(following.run()))

    async def close(self) -> None:
        """End both watches, also one that a library in between kept from hearing of it."""
        running = set(self._tasks)
        while running:
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=CANCEL_AGAIN_S)
