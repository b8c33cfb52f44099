"""One ``Snapshot`` per tick: threads, pods, layers, pressure, and the cost of observation."""

import time
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import structlog
from attrs import evolve

from temper_core.engine.stats import EngineStats
from temper_core.observe.bindings import Affinities
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.cgroup_usage import CgroupReader
from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.lasting_reader import LastingReader
from temper_core.observe.layers import layer_samples
from temper_core.observe.overhead import OwnCost
from temper_core.observe.pacing import ObservationPace
from temper_core.observe.places import Places
from temper_core.observe.pod_samples import pod_samples, with_coverage
from temper_core.observe.pressure import node_pressure, unmoved
from temper_core.observe.pressure_events import PressureEvents
from temper_core.observe.profile_coverage import ProfileCoverage
from temper_core.observe.samples import NS_PER_S, Sampler, Truth
from temper_core.observe.thread_rows import ThreadReader, ThreadRows
from temper_core.observe.threads import ProcThreads
from temper_core.observe.tiers import AUTO, OpenedReader, open_reader
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.profiles import ProfileFailure
from temper_core.records.snapshots import (
    Mode,
    Observing,
    PluginState,
    PodSample,
    Pressure,
    Snapshot,
    Status,
    ThreadSample,
)
from temper_core.settings.models import Settings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LEAST_RATIO = 0.0002
"""Threads that ran and waited for a smaller share of a window are only summed up: 1 ms of 5 s."""
AFRESH = "threads: counting restarted after a failed look; this window's threads are not known"


class _Seen(NamedTuple):
    """The result of one look at the kernel."""

    at: float
    monotonic_s: float
    window_s: float
    rows: ThreadRows
    threads: tuple[ThreadSample, ...]
    pods: tuple[PodSample, ...]


class Observer:
    """Observes the node and changes nothing. The first tick is the baseline and has no rates.

    ``cost`` also takes the CPU time of the agent's other parts. ``period_s`` is the wait until the
    next tick. ``machine`` may be replaced when CPUs come and go. *alarm* is called, from another
    thread, when tasks begin to wait for CPUs after a calm.

    Raises MachineError if the settings name a tier of observation that cannot work here.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each place that is read
        self,
        machine: MachineShape,
        settings: Settings,
        *,
        node: str,
        proc_root: Path | str = Path("/proc"),
        cgroup_roots: CgroupRoots | None = None,
        threads: ThreadReader | None = None,
        alarm: Callable[[], None] = lambda: None,
    ) -> None:
        self.machine = machine
        self._settings = settings
        self._node = node
        budget, roots = DescriptorBudget(), cgroup_roots or CgroupRoots()
        self.cost = OwnCost(proc_root, budget)
        self._threads = (
            LastingReader(OpenedReader(threads), None)
            if threads
            else _open(settings, proc_root, roots, budget)
        )
        self._cgroups = CgroupReader(roots, budget, lambda: len(self.machine.cpus))
        self._pressure = node_pressure(proc_root, budget)
        self._node_pressure: dict[str, Pressure] = {}
        self._affinities = Affinities(proc_root)
        self._pace = ObservationPace(settings.observe.period_s, settings.observe.budget_cpu_ratio)
        self._places = Places(None)
        self._clock_ns = 0
        self._looked_at: float | None = None
        self._has_window = False
        self._events = PressureEvents(proc_root, alarm)
        self._coverage = ProfileCoverage()
        self._events.listen()

    @property
    def period_s(self) -> float:
        """Seconds between two ticks: the setting, or more while observation costs too much."""
        return self._pace.period_s

    def hurried(self, due: float) -> float:
        """Return when to look next, by the monotonic clock: at *due*, or sooner after an alarm.

        The earliest time is half a period after the last look. Each calm ends with one alarm.
        """
        if not self._events.rang() or self._looked_at is None:
            return due
        return min(due, self._looked_at + self.period_s / 2)

    def tick(  # noqa: PLR0913 - one keyword for each source of a snapshot
        self,
        *,
        plan: LayerPlan | None,
        status: Status,
        stats: EngineStats | None = None,
        engine_pid: int | None = None,
        plugins: Iterable[PluginState] = (),
        profile_failures: Iterable[ProfileFailure] = (),
        truth: Truth | None = None,
    ) -> Snapshot:
        """Look once. Never raises. ``defects`` names the inputs that could not be read.

        *truth* is the kernel side's recent record of threads, by tid.
        """
        with self.cost.part("observe"):
            began_s = time.thread_time()
            overhead = self.cost.take(engine_pid=engine_pid, period_s=self.period_s)
            self._keep_pace()
            look = self._see(plan, status, truth)
            layers, missing = layer_samples(plan, stats, status)
            self._has_window = look.window_s > 0
            return Snapshot(
                at=look.at,
                monotonic_s=look.monotonic_s,
                window_s=look.window_s,
                node=self._node,
                machine=self.machine,
                status=status,
                threads=look.threads,
                pods=with_coverage(look.pods, self._coverage.of(plan, look.threads, look.pods)),
                layers=layers,
                pressure=self._node_pressure,
                plan=plan,
                defects=look.rows.defects + missing + self._defects(),
                reserve_cores=self._settings.plan.reserve_cores,
                observing=self._observing(look.rows),
                pressure_events=self._events.counts,
                plugins=tuple(plugins),
                profile_failures=tuple(profile_failures),
                overhead=evolve(
                    overhead,
                    threads_seen=look.rows.threads_seen,
                    tick_s=time.thread_time() - began_s,
                ),
            )

    def close(self) -> None:
        """Close every descriptor."""
        self._events.close()
        self._threads.close()
        self._cgroups.close()
        self._pressure.close()
        self.cost.close()

    def _keep_pace(self) -> None:
        """Adapt the period to the cost of the last look, including the work that followed."""
        if not self._has_window:  # the baseline opens every file once and is no measure of a look
            return
        before_s = self.period_s
        self._pace.note(self.cost.look_s)
        if self.period_s != before_s:
            log.warning("look_period_changed", period_s=self.period_s, before_s=before_s)

    def _see(self, plan: LayerPlan | None, status: Status, truth: Truth | None) -> _Seen:
        self._follow(plan)
        at, monotonic_s = time.time(), time.monotonic()
        rows = self._read_threads()
        window_s = 0.0 if self._looked_at is None else monotonic_s - self._looked_at
        self._looked_at = monotonic_s
        # The node's pressure is read first: a resource without a stall on the node by then had
        # none in a cgroup either.
        before, self._node_pressure = self._node_pressure, self._pressure.read()
        usage = self._cgroups.read(window_s, unmoved(before, self._node_pressure))
        sampler = Sampler(
            self._places,
            window_s,
            cpus=len(self.machine.cpus),
            is_enforcing=status.mode is Mode.ENFORCING,
            affinities=self._affinities,
            truth=truth,
        )
        pods = pod_samples(self._places, rows, usage, window_s)
        return _Seen(at, monotonic_s, window_s, rows, sampler.samples(rows.rows), pods)

    def _defects(self) -> tuple[str, ...]:
        bound = (self._affinities.defect,) if self._affinities.defect else ()
        return self._pressure.defects + self._events.defects + bound + self._pace.defects

    def _observing(self, rows: ThreadRows) -> Observing:
        return Observing(
            tier=self._threads.tier,
            reason=self._threads.reason,
            period_s=self.period_s,
            asked_period_s=self._settings.observe.period_s,
            stretched=self._pace.stretched,
            least_s=rows.least_ns / NS_PER_S,
            unlisted=sum(rest.threads for rest in rows.rest.values()),
            knows_threads=rows.tells_who_ran,
            budget_cpu_ratio=self._settings.observe.budget_cpu_ratio,
        )

    def _follow(self, plan: LayerPlan | None) -> None:
        if plan is self._places.plan:
            return
        before, places = self._places, Places(plan)
        changed = places.changed_since(before)
        if changed or places.pods != before.pods:
            self._cgroups.follow(chain.from_iterable(places.pods.values()), changed)
        if places.pods != before.pods:
            self._threads.refresh_cgroups()
        self._places = places

    def _read_threads(self) -> ThreadRows:
        try:
            rows = self._threads.snapshot(self._clock_ns)
        except OSError as error:
            why = f"threads: {error.filename}: {error.strerror}"
            rows = ThreadRows(0, defects=(why,), tells_who_ran=False)
        else:
            if not self._clock_ns:
                defects = () if self._looked_at is None else (AFRESH,)
                rows = evolve(rows, defects=(*rows.defects, *defects), tells_who_ran=False)
        self._clock_ns = rows.clock_ns
        self.cost.note_bpf(rows.kernel_ns)
        return rows


def _open(
    settings: Settings, proc_root: Path | str, roots: CgroupRoots, budget: DescriptorBudget
) -> LastingReader:
    opened = open_reader(
        settings.observe.tier,
        proc_root=str(proc_root),
        budget=budget,
        detail_threads=settings.observe.detail_threads,
        unified_root=roots.unified,
        least_ratio=LEAST_RATIO,
    )
    if settings.observe.tier != AUTO or isinstance(opened.reader, ProcThreads):
        return LastingReader(opened, None)
    return LastingReader(opened, lambda: ProcThreads(proc_root, budget))
