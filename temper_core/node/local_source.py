"""The pod source ``local``: the workloads of this host, found in its cgroup tree.

These are Kubernetes pods, containers, systemd units, runs of ``temper run``, and the settings'
``[[workloads]]``. The names and priorities of Kubernetes pods are not known here.
"""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from attrs import field, frozen

from temper_core.node.cgroup_names import CgroupKind, identify
from temper_core.node.cgroup_sizes import WeightScale, linear_shares, read_size, weight_scale
from temper_core.node.container_programs import ProgramReader, Programs
from temper_core.node.found_pods import CgroupOwner, pods_of, without_units
from temper_core.node.host_cgroups import HostCgroups
from temper_core.node.pod_size import NOTHING, CpuSize
from temper_core.node.polled_values import YOUNG_POLLS, PolledValues
from temper_core.node.processes import ProcessNames
from temper_core.node.program_watch import ProgramWatch
from temper_core.node.run_cgroups import is_populated, noted_size
from temper_core.node.workloads import Claim, Workload, claims, workload_pod
from temper_core.records.contributions import PodSourceContext
from temper_core.records.executions import ExecutionNews
from temper_core.records.pods import Pod

SURE_S = 25.0
"""Seconds between full polls. A limit may change without a notification."""


@frozen
class _Seen:
    """The inputs of one poll. Equal inputs make equal pods."""

    owners: tuple[CgroupOwner, ...]
    claims: tuple[Claim, ...]
    sizes: Mapping[str, CpuSize] = field(repr=False)
    programs: Mapping[str, tuple[str, ...]] = field(repr=False)

    def pods(self) -> tuple[Pod, ...]:
        """Make the pods, ordered by name."""
        pods = pods_of(self.owners, self.sizes, self.programs)
        pods += [workload_pod(claim, self._size_of(claim)) for claim in self.claims]
        return tuple(sorted(pods, key=lambda pod: (pod.key, pod.uid)))

    def _size_of(self, claim: Claim) -> CpuSize:
        if not claim.cgroups:
            return CpuSize()
        total = NOTHING
        for path in claim.cgroups:
            total = total.plus(self.sizes[path])
        return total


class LocalPods:
    """The pods of this host. A poll without changes costs next to nothing.

    Without inotify it costs a stat per cgroup. A cgroup of ``temper run`` costs one more file,
    since it is a pod only while it holds a process.
    """

    def __init__(
        self, context: PodSourceContext, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._workloads = [Workload.of(rule) for rule in context.workloads]
        self._wants_units = bool(context.options.units)
        self._program_reader = ProgramReader(Path(context.proc_root))
        self._cpus = len(context.machine.cpus)
        self._host = HostCgroups(context.proc_root, context.cgroup_root)
        self._process_names = ProcessNames(context.proc_root)
        self._sizes = PolledValues(self._read_size)
        self._programs = ProgramWatch(self._read_programs)
        self._scale: WeightScale = linear_shares
        self._names: frozenset[str] = frozenset()
        self._claims: tuple[Claim, ...] = ()
        self._seen: _Seen | None = None
        self._pods: tuple[Pod, ...] = ()
        self._clock = clock
        self._sure_until = 0.0
        self._young_polls = YOUNG_POLLS

    def fileno(self) -> int:
        """Return the descriptor that is readable after a change, or -1 without one.

        Processes start and end without a notification. There is none if a rule names processes.
        """
        return -1 if self._names_processes else self._host.fileno()

    def pods(self) -> tuple[Pod, ...]:
        """Return the current pods, the same tuple while nothing has changed."""
        if not self._is_due() and not self._programs.look(self._clock()):
            return self._pods
        has_changed = self._host.refresh()
        if has_changed and (top := self._host.kubepods):
            self._scale = weight_scale(top, self._cpus)
        self._claim(has_changed=has_changed)
        inputs = self._look()
        if inputs != self._seen:
            self._seen, self._pods = inputs, inputs.pods()
        return self._pods

    def again_in_s(self) -> float:
        """Return the seconds until a container's programs are to be read again."""
        return max(0.0, self._programs.due_at() - self._clock())

    def executed(self, news: ExecutionNews) -> None:
        """Read the containers again in which a process executed another program."""
        self._programs.executed(news, self._clock())

    def close(self) -> None:
        """Drop the pods, and stop watching the cgroups."""
        self._seen, self._pods = None, ()
        self._host.close()
        self._program_reader.close()

    @property
    def _names_processes(self) -> bool:
        return any(workload.rule.process for workload in self._workloads)

    def _is_due(self) -> bool:
        """Whether to poll: soon after a change, and every ``SURE_S``."""
        now, news = self._clock(), self._host.news()
        self._sizes.forget(news.values)
        self._programs.joined(news.processes, now)
        if news or self.fileno() < 0:
            self._young_polls = YOUNG_POLLS
        elif self._young_polls:
            self._young_polls -= 1
        elif now < self._sure_until:
            return False
        self._sure_until = now + SURE_S
        return True

    def _claim(self, *, has_changed: bool) -> None:
        """Apply the settings' rules again if cgroups or process names have changed."""
        names = self._names
        if self._names_processes:
            names = self._process_names.refresh()
        if has_changed or names != self._names:
            self._names = names
            self._claims = tuple(claims(self._workloads, self._host.paths, names))

    def _look(self) -> _Seen:
        owners = self._host.owners if self._wants_units else without_units(self._host.owners)
        owners = tuple(
            owner
            for owner in owners
            if not (self._is_claimed(owner) or self._is_left_behind(owner))
        )
        paths = [owner.identity.outer or owner.path for owner in owners]
        paths += [path for claim in self._claims for path in claim.cgroups]
        main_paths = [path for owner in owners for path in owner.main_paths]
        return _Seen(
            owners,
            self._claims,
            self._sizes.refresh(paths),
            self._programs.names(main_paths, self._clock()),
        )

    def _is_claimed(self, owner: CgroupOwner) -> bool:
        # A run of temper run has a tier of its own.
        is_run = owner.identity.kind is CgroupKind.RUN
        return not is_run and any(claim.covers(owner.path) for claim in self._claims)

    def _is_left_behind(self, owner: CgroupOwner) -> bool:
        # The end of a cgroup's last process changes no directory, so this is read each time.
        is_run = owner.identity.kind is CgroupKind.RUN
        return is_run and not is_populated(self._host.directory(owner.path))

    def _read_size(self, path: str) -> CpuSize:
        scale = self._scale if "kubepods" in path else linear_shares
        size = read_size(self._host.sizes_root / path, scale)
        if identify(path).kind is CgroupKind.RUN:
            return noted_size(self._host.directory(path), otherwise=size)
        return size

    def _read_programs(self, path: str, known: Collection[str]) -> Programs:
        return self._program_reader.read(self._host.directory(path), known)
