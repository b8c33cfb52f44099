"""One ``Snapshot`` per tick: threads, pods, layers, pressure, and what looking costs."""

import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from attrs import evolve

from temper_core.engine.stats import EngineStats
from temper_core.observe.cgroup_usage import CgroupReader, CgroupRoots
from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.layers import layer_samples
from temper_core.observe.overhead import OwnCost
from temper_core.observe.pacing import Pace
from temper_core.observe.places import Places
from temper_core.observe.pressure import node_pressure
from temper_core.observe.samples import Truth, pod_samples, thread_samples
from temper_core.observe.thread_rows import ThreadReader, ThreadRows
from temper_core.observe.threads import ProcThreads
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.profiles import ProfileFailure
from temper_core.records.snapshots import Mode, Overhead, PluginState, Snapshot, Status
from temper_core.settings.models import Settings


class Observer:
    """Looks at the node; changes nothing. The first tick is the baseline and has no rates.

    ``cost`` takes the CPU time of the agent's other parts; ``period_s`` is how long to wait until
    the next tick; ``machine`` may be replaced when CPUs come and go.
    """

    def __init__(
        self,
        machine: MachineShape,
        settings: Settings,
        *,
        node: str,
        proc_root: Path | str = Path("/proc"),
        cgroup_roots: CgroupRoots | None = None,
        threads: ThreadReader | None = None,
    ) -> None:
        self.machine = machine
        self.cost = OwnCost(proc_root)
        self._settings = settings
        self._node = node
        budget = DescriptorBudget()
        self._threads = threads or ProcThreads(proc_root, budget)
        self._cgroups = CgroupReader(cgroup_roots or CgroupRoots(), budget)
        self._pressure = node_pressure(proc_root, budget)
        self._pace = Pace(settings.observe.period_s, settings.observe.budget_cpu_ratio)
        self._places = Places(None)
        self._clock_ns = 0
        self._looked_at: float | None = None

    @property
    def period_s(self) -> float:
        """Seconds between two ticks: the setting, or more while looking costs too much."""
        return self._pace.period_s

    def tick(  # noqa: PLR0913 - one keyword for each source of what a snapshot tells
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
        """Look once. Whatever cannot be read is named in ``defects``; nothing raises.

        *truth* is what the kernel side knows of threads, by tid, as of a moment ago.
        """
        began_s = time.thread_time()
        overhead = self.cost.take(engine_pid=engine_pid, period_s=self.period_s)
        with self.cost.part("observe"):
            snapshot = self._look(plan, status, stats, truth)
        cost_s = time.thread_time() - began_s
        if snapshot.window_s > 0:  # the baseline opens every file once: no measure of a tick
            self._pace.note(cost_s)
        return evolve(
            snapshot,
            overhead=evolve(overhead, tick_s=cost_s, threads_seen=snapshot.overhead.threads_seen),
            plugins=tuple(plugins),
            profile_failures=tuple(profile_failures),
            defects=snapshot.defects + self._pace.defects,
        )

    def close(self) -> None:
        """Let go of every descriptor."""
        self._threads.close()
        self._cgroups.close()
        self._pressure.close()

    def _look(
        self,
        plan: LayerPlan | None,
        status: Status,
        stats: EngineStats | None,
        truth: Truth | None,
    ) -> Snapshot:
        self._follow(plan)
        at, monotonic_s = time.time(), time.monotonic()
        rows = self._read_threads()
        window_s = 0.0 if self._looked_at is None else monotonic_s - self._looked_at
        self._looked_at = monotonic_s
        threads = thread_samples(
            rows.rows,
            self._places,
            window_s,
            is_enforcing=status.mode is Mode.ENFORCING,
            truth=truth,
        )
        usage = self._cgroups.read(chain.from_iterable(self._places.pods.values()))
        layers, missing = layer_samples(plan, stats, status)
        pressure = self._pressure.read()
        return Snapshot(
            at=at,
            monotonic_s=monotonic_s,
            window_s=window_s,
            node=self._node,
            machine=self.machine,
            status=status,
            threads=threads,
            pods=pod_samples(self._places, rows, usage, window_s),
            layers=layers,
            pressure=pressure,
            plan=plan,
            overhead=Overhead(threads_seen=rows.threads_seen),
            defects=rows.defects + self._pressure.defects + missing,
            reserve_cores=self._settings.plan.reserve_cores,
        )

    def _follow(self, plan: LayerPlan | None) -> None:
        if plan is self._places.plan:
            return
        places = Places(plan)
        if places.pods != self._places.pods:
            self._threads.refresh_cgroups()
        self._places = places

    def _read_threads(self) -> ThreadRows:
        try:
            rows = self._threads.snapshot(self._clock_ns)
        except OSError as error:
            rows = ThreadRows(0, defects=(f"threads: {error.filename}: {error.strerror}",))
        self._clock_ns = rows.clock_ns
        return rows
