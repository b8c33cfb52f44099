"""Keeps a cluster up to date with watches of the API server. Nothing else asks it anything."""

import asyncio
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from temper_kube.access import Access
from temper_kube.list_pages import PAGE
from temper_kube.list_watch import ListWatch, Query
from temper_kube.watch_status import WatchStatus
from temper_plugin_power.extender import reading
from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.following import Follower, Object, Records
from temper_plugin_power.resources.definitions import GROUP, VERSION

OURS = f"/apis/{GROUP}/{VERSION}"
OWNERS = {
    "replicasets": ("/apis/apps/v1/replicasets", "ReplicaSet"),
    "statefulsets": ("/apis/apps/v1/statefulsets", "StatefulSet"),
    "jobs": ("/apis/batch/v1/jobs", "Job"),
}


@frozen
class Watched:
    """One watched collection: its query, the reader of its objects, and where records go."""

    resource: str
    query: Query
    read: Callable[[Object], tuple[Any, Any] | None]
    put: Callable[..., object]


def watched_by(cluster: Cluster) -> tuple[Watched, ...]:
    """Return what is watched. Of nodes and owners the API server sends the metadata only."""
    nodes = Query("/api/v1/nodes", metadata_only=True, page=PAGE)
    return (
        Watched("nodes", nodes, reading.label_of_object, cluster.put_label),
        Watched("nodetwins", _ours("nodetwins"), reading.twin_of_object, cluster.put_twin),
        Watched(
            "nodehardwares",
            _ours("nodehardwares"),
            reading.hardware_of_object,
            cluster.put_hardware,
        ),
        Watched(
            "workloadprofiles",
            _ours("workloadprofiles"),
            reading.profile_of_object,
            cluster.put_profile,
        ),
        *(
            Watched(
                resource,
                Query(path, metadata_only=True, page=PAGE),
                reading.eviction_of_object(kind),
                cluster.put_eviction,
            )
            for resource, (path, kind) in OWNERS.items()
        ),
    )


@define(eq=False)
class Watches:
    """All watches, from ``start`` to ``close``."""

    cluster: Cluster
    statuses: tuple[WatchStatus, ...] = field(default=(), init=False)
    _running: list[ListWatch] = field(factory=list, init=False)

    def start(self, access: Access) -> None:
        """Begin. The cluster is updated in the running event loop."""
        call = asyncio.get_running_loop().call_soon_threadsafe
        watched = watched_by(self.cluster)
        self.statuses = tuple(WatchStatus(each.resource) for each in watched)
        for each, status in zip(watched, self.statuses, strict=True):
            follower = Follower(Records(each.resource, each.put), each.read, call)
            watch = ListWatch(access, each.query, follower, status, logs_each_reason=True)
            self._running.append(watch)
            watch.start()

    def why_unready(self) -> str:
        """Return what has not been listed yet, and why. Empty once all has been."""
        return "; ".join(
            f"{status.resource}: {status.reason}"
            for status in self.statuses
            if not status.has_listed.is_set()
        )

    async def close(self) -> None:
        """End all watches."""
        await asyncio.gather(*(asyncio.to_thread(watch.close) for watch in self._running))


def _ours(plural: str) -> Query:
    return Query(f"{OURS}/{plural}", page=PAGE)
