"""Steering: which thread belongs into which layer, said in a way that needs no other engine.

A *hint* is a number that the engine looks up per thread in a map that Temper owns. Each layer
*identity* (its name) has one hint, which keeps its meaning from plan to plan.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from attrs import field, frozen

from temper_core.errors import PlanError
from temper_core.records.layers import Layer
from temper_core.records.profiles import ThreadMatch
from temper_core.records.tiers import Tier

LARGEST_HINT = 1_024
"""The engine ignores larger ones (scx_layered 1.1.4)."""
NO_HINT = 0xFFFF
FIXED_HINTS: Mapping[str, int] = {
    "system": 1,
    "open": 2,
    **{tier.value: 3 + tier.rank for tier in Tier},
}
"""0 is never given: an entry of the map that was never written would mean it."""
FIRST_GROUP_HINT = 16
SYSTEM = "system"
OPEN = "open"
NAME_PARTS = re.compile(r"[-.:]")
"""What stands between the words of a container's directory: ``cri-containerd-<id>.scope``."""


class ScopeKind(StrEnum):
    """How the threads of one scope are found."""

    PATH = "path"
    """A cgroup by its path below the hierarchy's root, without slashes at either end."""
    POD = "pod"
    """A pod's cgroup by the name of its directory, or what that ends with."""
    CONTAINER = "container"
    """A container's cgroup by the runtime's id in the name of its directory."""
    PROCESS = "process"
    """Any cgroup. What the name of the process (its leading thread) begins with."""


@frozen
class Scope:
    """Where rules apply: at a cgroup and below, unless it is ``exact``.

    Of several scopes the innermost counts. A process scope counts wherever no pod's does.
    """

    kind: ScopeKind
    text: str
    exact: bool = False

    def is_at(self, path: str) -> bool:
        """Whether the scope's own cgroup is the one at *path*, without slashes at either end.

        What lies below belongs to the scope as well. That is for the caller to find.
        """
        name = path.rpartition("/")[2]
        if self.kind is ScopeKind.PATH:
            return path == self.text
        if self.kind is ScopeKind.POD:
            # systemd puts the names of all slices above in front, joined by dashes.
            return self.text in (name, name.rpartition("-")[2])
        return self.kind is ScopeKind.CONTAINER and self.text in NAME_PARTS.split(name)


@frozen
class SteeringRule:
    """Threads for which *match* holds belong into *layer*. No match takes every thread.

    ``root_only`` asks for the effective user id 0 as well.
    """

    layer: str
    match: ThreadMatch | None = None
    root_only: bool = False

    @property
    def is_for_kernel(self) -> bool:
        """Whether the kernel side can judge it: by prefixes of names, and leader or not."""
        return self.match is None or self.match.is_static


@frozen
class SteeredPlace:
    """The rules of one scope, of which the first that matches wins. ``pod`` is a pod's key.

    ``is_of_pods`` says that pods live there which nobody has told of yet.
    A thread for which no rule holds goes where the plan's unknown threads go: the Open layer.
    """

    scope: Scope
    rules: tuple[SteeringRule, ...]
    pod: str = ""
    is_of_pods: bool = False

    @property
    def outranks_processes(self) -> bool:
        """Whether it counts where a process scope holds too: any pod's, and what is all system."""
        return bool(self.pod) or self.is_of_pods or all(rule.layer == SYSTEM for rule in self.rules)


@frozen
class Steering:
    """What a steered plan has to keep to.

    ``hints`` are all that were ever given, by layer name. ``in_force`` the layers of the engine
    that runs. ``hold`` asks for the best plan that these layers can serve, without another engine.
    """

    hints: Mapping[str, int] = field(factory=lambda: FIXED_HINTS)
    in_force: tuple[Layer, ...] = ()
    hold: bool = False


def hints_for(names: Iterable[str], known: Mapping[str, int] = FIXED_HINTS) -> dict[str, int]:
    """Return the hints of layers *names*: those *known*, and new numbers for the others.

    Numbers of layers that are gone are given again only when all others are in use, because old
    ones may still be in the map. Of two known layers of one number the first keeps it. Raises
    PlanError where there are more layers than numbers.
    """
    wanted = dict.fromkeys(names)
    known = {**FIXED_HINTS, **known, **FIXED_HINTS}
    owners = {number: name for name, number in reversed(known.items()) if name in wanted}
    found = {name: known[name] for name in wanted if name in known and owners[known[name]] == name}
    fresh = max([FIRST_GROUP_HINT - 1, *known.values()]) + 1
    spare = iter(sorted({*range(FIRST_GROUP_HINT, LARGEST_HINT)} - {*found.values()}))
    for name in wanted:
        if name not in found:
            number = fresh if fresh < LARGEST_HINT else next(spare, None)
            if number is None:
                raise PlanError("plan", [f"there is no hint left for layer {name!r}"])
            found[name] = number
            fresh += 1
    return found


@frozen
class ThreadTruth:
    """One thread as the kernel side sees it: where it should be, what its hint says, where it is.

    ``layer`` is the engine's own record, empty where it has none yet. ``hinted`` is empty without
    a hint. ``start_ns`` (since boot) tells a reused tid from its predecessor. What user space
    decided by what the kernel side cannot see ``is_decided``.
    """

    tid: int
    tgid: int
    start_ns: int
    comm: str
    cgroup_id: int
    run_ns: int
    expected: str = ""
    hinted: str = ""
    layer: str = ""
    is_decided: bool = False


@frozen
class SteeringState:
    """What steering did. Counters grow from the agent's start.

    ``mode`` is ``hints`` or ``static``, ``reason`` why it is static or what is wrong.
    ``steered`` are hints written by the last walks, ``corrected`` hints that somebody else had
    changed, ``kicked`` threads that were reniced so that they follow, ``astray`` those that are
    not where their hint says now, ``unresolved`` scopes whose cgroup was not found.
    """

    mode: str = "static"
    reason: str = ""
    threads: int = 0
    steered: int = 0
    corrected: int = 0
    kicked: int = 0
    astray: int = 0
    unresolved: tuple[str, ...] = ()
    failures: int = 0
    walk_ns: int = 0
    by_hook: Mapping[str, int] = field(factory=dict)
