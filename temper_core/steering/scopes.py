"""Places as cgroup ids, the keys of the kernel side's table.

A cgroup's id is the inode number of its directory (``kernfs_node.id`` on 64-bit kernels).
"""

from collections.abc import Mapping
from typing import Protocol

from attrs import field, frozen

from temper_core.plan.membership import place_index
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import Scope, ScopeKind, SteeredPlace


class CgroupIds(Protocol):
    """The directories of the cgroup v2 hierarchy, by their inode numbers."""

    @property
    def inodes(self) -> Mapping[str, int]:
        """Inode by path without outer slashes, as of the last refresh. The root's path is empty."""
        ...

    def refresh(self) -> bool:
        """Read the hierarchy. Return whether any directory appeared, vanished or was replaced."""
        ...


@frozen
class PlacedCgroups:
    """The node's cgroups by their ids, and the places of one plan that cover them.

    ``places`` has every cgroup. ``entries`` has only those whose place differs from the one
    inherited from the cgroup above. ``missing`` are pods' scopes that have no cgroup yet.
    """

    paths: Mapping[int, str] = field(factory=dict)
    places: Mapping[int, SteeredPlace | None] = field(factory=dict)
    entries: Mapping[int, SteeredPlace] = field(factory=dict)
    missing: tuple[Scope, ...] = ()

    def pod_of(self, cgroup: int) -> str:
        """Return the pod whose place covers *cgroup*. Empty without one."""
        place = self.places.get(cgroup)
        return place.pod if place is not None else ""


def place_cgroups(plan: LayerPlan, inodes: Mapping[str, int]) -> PlacedCgroups:
    """Find the plan's place of every directory of the hierarchy."""
    index = place_index(plan)
    passed_down: dict[str, SteeredPlace | None] = {}
    places: dict[int, SteeredPlace | None] = {}
    entries: dict[int, SteeredPlace] = {}
    for path in sorted(inodes):  # parents come first
        inherited = passed_down.get(path.rpartition("/")[0]) if path else None
        place = index.place_at(path)
        places[inodes[path]] = place
        is_exact = place is not None and place.scope.exact
        passed_down[path] = inherited if is_exact else place
        if place is not None and place is not inherited:
            entries[inodes[path]] = place
    return PlacedCgroups(
        {number: path for path, number in inodes.items()},
        places,
        entries,
        tuple(_missing(plan, entries)),
    )


def _missing(plan: LayerPlan, entries: Mapping[int, SteeredPlace]) -> list[Scope]:
    """Return pods' scopes without a cgroup. The node's own processes need not exist."""
    covered = {place.scope for place in entries.values()}
    scopes = (place.scope for place in plan.steering if place.pod)
    return [s for s in scopes if s not in covered and s.kind is not ScopeKind.PROCESS]
