"""The watches of the operator, and what they keep."""

from attrs import define, field, frozen

from temper_kube.access import Access
from temper_kube.list_pages import PAGE
from temper_kube.list_watch import Follower, ListWatch, Query
from temper_kube.watch_status import WatchStatus
from temper_plugin_power.controller.known_objects import KnownObjects
from temper_plugin_power.controller.nodes import KnownNode, known_node
from temper_plugin_power.controller.pod_table import PodTable
from temper_plugin_power.controller.pods import KnownPod, pod_reader
from temper_plugin_power.controller.stored_profiles import (
    PROFILES,
    StoredProfile,
    stored_profile,
)
from temper_plugin_power.controller.twins import (
    HARDWARES,
    TWINS,
    Record,
    StoredTwin,
    hardware_record,
    stored_twin,
)
from temper_plugin_power.resources.reading import node_name
from temper_plugin_power.settings.operator import GPU_MODELS

STALE_S = 30.0
RESOURCES = ("nodes", "pods", "profiles", "twins", "hardware")
NODES = Query("/api/v1/nodes", page=PAGE)
PODS = Query("/api/v1/pods", fields="status.phase!=Failed,status.phase!=Succeeded", page=PAGE)


@frozen
class Scope:
    """The nodes in scope, and the prefixes of annotations, the strongest first."""

    node_selector: str
    prefixes: tuple[str, ...]
    gpu_labels: tuple[str, ...] = GPU_MODELS
    """Labels of nodes that may name the model of the GPUs, the strongest first."""


@define
class Watches:
    """The state of a cluster, from ``start`` to ``close``."""

    scope: Scope
    pods: PodTable
    nodes: KnownObjects[KnownNode] = field(init=False)
    profiles: KnownObjects[StoredProfile] = field(init=False)
    twins: KnownObjects[StoredTwin] = field(init=False)
    hardware: KnownObjects[tuple[str, Record]] = field(init=False)
    statuses: dict[str, WatchStatus] = field(init=False)
    _names: frozenset[str] | None = field(default=None, init=False)
    _running: list[ListWatch] = field(factory=list, init=False)
    _pod_objects: KnownObjects[KnownPod] = field(init=False)

    def __attrs_post_init__(self) -> None:
        selector, labels = self.scope.node_selector, self.scope.gpu_labels
        self.nodes = KnownObjects(lambda item: known_node(item, selector, labels), self._forget)
        self.profiles = KnownObjects(stored_profile)
        self.twins = KnownObjects(stored_twin)
        self.hardware = KnownObjects(lambda item: (node_name(item), hardware_record(item)))
        self._pod_objects = KnownObjects(pod_reader(self.scope.prefixes), self.pods.noted)
        self.statuses = {name: WatchStatus(name) for name in RESOURCES}

    @property
    def have_listed(self) -> bool:
        """Whether everything has been listed once."""
        return all(status.has_listed.is_set() for status in self.statuses.values())

    def are_current(self, *names: str) -> bool:
        """Whether what is known of these resources is not older than ``STALE_S``."""
        known = (self.statuses[name] for name in names)
        return all(each.has_listed.is_set() and each.stale(STALE_S) is None for each in known)

    def node_names(self) -> frozenset[str]:
        """Return the names of the nodes in scope."""
        names = self._names
        if names is None:
            names = self._names = frozenset(node.name for node in self.nodes.records())
        return names

    def _forget(self, before: KnownNode | None, after: KnownNode | None) -> None:
        if before is None or after is None:
            self._names = None

    def start(self, access: Access) -> None:
        """Begin. Returns at once."""
        followed: dict[str, tuple[Query, Follower]] = {
            "nodes": (NODES, self.nodes),
            "pods": (PODS, self._pod_objects),
            "profiles": (Query(PROFILES, page=PAGE), self.profiles),
            "twins": (Query(TWINS, page=PAGE), self.twins),
            "hardware": (Query(HARDWARES, page=PAGE), self.hardware),
        }
        for name, (query, follower) in followed.items():
            watch = ListWatch(access, query, follower, self.statuses[name], logs_each_reason=True)
            self._running.append(watch)
            watch.start()

    def close(self) -> None:
        """End the watches."""
        for watch in self._running:
            watch.close()
