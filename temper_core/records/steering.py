"""Steering: the assignment of threads to layers by hints, which needs no new engine.

A *hint* is a number that the engine looks up per thread in a map that Temper owns. Each layer
*identity* (its name) has one hint, which keeps its meaning from plan to plan.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from temper_core.records.layers import Layer
from temper_core.records.read_only import read_only
from temper_core.records.thread_groups import ThreadMatch
from temper_core.records.tiers import Tier

LARGEST_HINT = 1_024
"""The engine ignores larger hints (scx_layered 1.1.4)."""
NO_HINT = 0xFFFF
LOOK_EVERY_S = 0.5
"""The longest time between two looks of user space at threads that only it can classify."""
BEHAVIOUR_WINDOW_S = 2.0
"""The shortest window over which the behaviour of a thread is measured."""
FIXED_HINTS: Mapping[str, int] = {
    "system": 1,
    "open": 2,
    **{tier.value: 3 + tier.rank for tier in Tier},
}
"""0 is never used, because it is the value of unwritten entries of the map."""
FIRST_GROUP_HINT = 16
SYSTEM = "system"
OPEN = "open"
NAME_PARTS = re.compile(r"[-.:]")
"""The separators in the name of a container's directory: ``cri-containerd-<id>.scope``."""


class ScopeKind(StrEnum):
    """The way to find the threads of a scope."""

    PATH = "path"
    """A cgroup by its path below the hierarchy's root, without slashes at either end."""
    POD = "pod"
    """A pod's cgroup by the name of its directory, or the end of that name."""
    CONTAINER = "container"
    """A container's cgroup by the runtime's id in the name of its directory."""
    PROCESS = "process"
    """Any cgroup, by the beginning of the process's name (that of its leading thread)."""


@frozen
class Scope:
    """The scope of rules: a cgroup and all below, unless it is ``exact``.

    The innermost of several scopes counts. A process scope counts if no pod's scope does.
    """

    kind: ScopeKind
    text: str
    exact: bool = False

    def is_at(self, path: str) -> bool:
        """Whether the scope's own cgroup is the one at *path*, without slashes at either end.

        Cgroups below it belong to the scope as well. The caller has to find those.
        """
        name = path.rpartition("/")[2]
        if self.kind is ScopeKind.PATH:
            return path == self.text
        if self.kind is ScopeKind.POD:
            # systemd prefixes the names of all parent slices, joined by dashes.
            return self.text in (name, name.rpartition("-")[2])
        return self.kind is ScopeKind.CONTAINER and self.text in NAME_PARTS.split(name)


@frozen
class SteeringRule:
    """Threads for which *match* holds belong to *layer*. A rule without a match takes all threads.

    ``root_only`` also requires the effective user id 0. ``nice`` is the nice value of the threads,
    0 to leave it as it is. ``until_seen`` restricts the rule to threads whose behaviour is unknown.
    """

    layer: str
    match: ThreadMatch | None = None
    root_only: bool = False
    nice: int = 0
    until_seen: bool = False

    @property
    def is_for_kernel(self) -> bool:
        """Whether the kernel side can evaluate it: by prefixes of names, and leadership."""
        return self.match is None or self.match.is_static


@frozen
class SteeredPlace:
    """The rules of one scope. The first rule that matches wins. ``pod`` is a pod's key.

    ``is_of_pods`` marks a directory of pods that no source has reported yet. A thread without a
    matching rule goes to the Open layer.
    """

    scope: Scope
    rules: tuple[SteeringRule, ...]
    pod: str = ""
    is_of_pods: bool = False

    @property
    def outranks_processes(self) -> bool:
        """Whether it outranks process scopes: pods' places do, and those with only system rules."""
        return bool(self.pod) or self.is_of_pods or all(rule.layer == SYSTEM for rule in self.rules)


@frozen
class Steering:
    """The constraints of a steered plan.

    ``hints`` are all hints assigned so far, by layer name. ``in_force`` are the layers of the
    running engine. ``hold`` requests the best plan that these layers can serve, without a new
    engine.
    """

    hints: Mapping[str, int] = field(factory=lambda: FIXED_HINTS, converter=read_only)
    in_force: tuple[Layer, ...] = ()
    hold: bool = False


@frozen
class ThreadTruth:
    """One thread in the kernel side's view: its expected, hinted and actual layer.

    ``layer`` is the engine's own record, empty if it has none yet. ``hinted`` is empty without a
    hint. ``start_ns`` (since boot) distinguishes a reused tid from its predecessor. ``is_decided``
    if user space decided by conditions that the kernel side cannot evaluate.
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
    """The state of steering. Counters grow from the agent's start.

    ``mode`` is ``hints`` or ``static``, ``reason`` why it is static, or the current problem.
    ``steered`` counts hints written by the walks, ``corrected`` hints that another process had
    changed, ``kicked`` threads that were reniced so that they follow. ``astray`` counts
    threads whose layer is not that of their hint now. ``unresolved`` are scopes whose cgroup was
    not found. ``niced`` counts threads whose nice value is changed now, ``own_nice`` those that
    keep a nice value or policy of their own.
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
    niced: int = 0
    own_nice: int = 0
    by_hook: Mapping[str, int] = field(factory=dict, converter=read_only)
