"""The observations of the node in one window."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from temper_core.records.lint import Violation
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.profiles import ProfileFailure
from temper_core.records.read_only import read_only
from temper_core.records.steering import SteeringState
from temper_core.records.tiers import LayerKind, Tier
from temper_core.records.trials import TrialState

SCHEMA_VERSION = 1


class Mode(StrEnum):
    """The agent's current effect on the kernel."""

    OBSERVE_ONLY = "observe_only"
    ENFORCING = "enforcing"
    RELOADING = "reloading"
    SAFE_MODE = "safe_mode"


class SafeModeReason(StrEnum):
    """Why a node that should enforce does not."""

    REQUESTED = "requested"
    PREFLIGHT = "preflight"
    INVALID_PLAN = "invalid_plan"
    EJECTED = "ejected"
    CRASH_LOOP = "crash_loop"
    FOREIGN_SCHEDULER = "foreign_scheduler"


@frozen
class Status:
    """The agent's state. ``reason`` is a SafeModeReason, or why it only observes."""

    mode: Mode
    reason: str = ""
    detail: str = ""
    generation: int = 0
    engine: str = ""
    since: float = 0.0


@frozen(slots=False)
class ThreadSample:
    """One thread over one window.

    ``cpu_used`` is in CPUs (1.0 = one CPU busy throughout), ``run_delay_ratio`` the time spent
    runnable but waiting, as a share of the window. ``layer`` is the layer in the engine's own
    record (``layer_is_known``) or the inferred one, ``expected_layer`` that of the plan,
    ``hinted_layer`` that of its hint. All are empty without an engine. ``start_ticks``
    distinguishes a reused tid from its predecessor.

    Counts are of the window, -1 if the tier of observation cannot count them: ``runs`` (times it
    got a CPU), ``voluntary`` and ``involuntary`` switches, ``migrations``. ``policy`` is
    sched(7)'s name (``other``, ``fifo``, ...), empty if unknown. ``affinity`` are the CPUs it is
    bound to, empty if it may use all. ``waiting_s`` is how long it had waited when it was sampled.
    """

    tid: int
    tgid: int
    comm: str
    process: str
    start_ticks: int
    cpu: int
    cpu_used: float
    run_delay_ratio: float
    cgroup: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    tier: Tier | None = None
    layer: str = ""
    expected_layer: str = ""
    is_kthread: bool = False
    uid: int = 0
    age_s: float = 0.0
    hinted_layer: str = ""
    layer_is_known: bool = False
    runs: int = -1
    voluntary: int = -1
    involuntary: int = -1
    migrations: int = -1
    policy: str = ""
    nice: int = 0
    rt_priority: int = 0
    affinity: tuple[int, ...] = ()
    waiting_s: float = 0.0


@frozen(slots=False)
class PodSample:
    """One pod over one window. Throttling is that of the kernel's CFS quota.

    ``cpu_used`` and ``run_delay`` are in CPUs. ``short_lived_cpu_used`` is the part of
    ``cpu_used`` in threads that started and ended between two looks. ``switches`` is -1 if the
    tier of observation counts none, ``memory_bytes`` is -1 if no cgroup accounts for it.
    ``throttled_s`` sums over CPUs. ``quota_cores`` and ``weight`` are those of the cgroup (None if
    unset). ``cpuset`` are the CPUs it is confined to, empty for all. ``unthrottled_pressure`` is
    the share of the window in which a thread waited for a CPU (PSI cpu ``some``), less the share
    that throttling explains. ``profile_coverage`` is the share of the pod's CPU time in threads
    that a match of the profile takes. ``profile_code`` is the reason why no profile is applied, or
    a special case of the applied one (``ProfileCode``, or ``expired``). ``profile_reason`` is the
    same as text.
    """

    namespace: str
    pod: str
    uid: str
    tier: Tier
    threads: int
    cpu_used: float
    throttled_ratio: float = 0.0
    memory_bytes: int = 0
    profile: str = ""
    pressure: Mapping[str, "Pressure"] = field(factory=dict, converter=read_only)
    short_lived_cpu_used: float = 0.0
    run_delay: float = 0.0
    switches: int = 0
    throttled_s: float = 0.0
    quota_cores: float | None = None
    weight: int | None = None
    cpuset: tuple[int, ...] = ()
    unthrottled_pressure: float | None = None
    profile_coverage: float | None = None
    profile_code: str = ""
    profile_reason: str = ""

    @property
    def key(self) -> str:
        """The pod's key, as that of ``Pod``: ``namespace/name``, or the name without one."""
        return f"{self.namespace}/{self.pod}" if self.namespace else self.pod


@frozen
class LayerSample:
    """One layer over one window, by the engine's counts. ``util`` is None if it owns no CPU.

    ``fallback_ratio`` is the share of scheduling events that broke the layer's affinity.
    ``outside_ratio`` is the share of its CPU time on CPUs that it did not own at the time (the
    engine's ``util_open_frac``), None where the engine does not count it.
    """

    name: str
    kind: LayerKind
    cpus: tuple[int, ...]
    cpus_used: float
    util: float | None
    tasks: int
    tier: Tier | None = None
    demoted: bool = False
    reason: str = ""
    fallback_ratio: float = 0.0
    outside_ratio: float | None = None


@frozen
class PressureLine:
    """One line of a PSI file. Averages as ratios 0..1, total in microseconds."""

    avg10: float
    avg60: float
    avg300: float
    total_us: int


@frozen
class Pressure:
    """PSI of one resource. ``full`` is None if the kernel has no such line for it."""

    some: PressureLine
    full: PressureLine | None = None


@frozen
class InstrumentCost:
    """The cost of an instrument besides its line of the agent's own CPU time.

    ``helper_cpu_ratio`` is over the window, ``helper_cpu_s`` since the agent's start.
    """

    helpers: int = 0
    helper_cpu_ratio: float = 0.0
    helper_cpu_s: float = 0.0
    helper_memory_bytes: int = 0
    state_bytes: int = 0
    state_limit_bytes: int = 0


@frozen
class Overhead:
    """The agent's own cost over the window: CPU as a share of one core, memory in bytes.

    ``bpf_cpu_ratio`` is the part of ``cpu_ratio`` that ran inside BPF programs. ``series`` is the
    count of the last scrape. ``instruments`` holds, by name, costs outside the agent's process.
    """

    cpu_ratio: Mapping[str, float] = field(factory=dict, converter=read_only)
    memory_bytes: int = 0
    engine_memory_bytes: int = 0
    period_s: float = 0.0
    tick_s: float = 0.0
    threads_seen: int = 0
    descriptors: int = 0
    bpf_cpu_ratio: float = 0.0
    series: int = 0
    instruments: Mapping[str, InstrumentCost] = field(factory=dict, converter=read_only)


@frozen
class Observing:
    """The state of observing: the tier of observation, and why it is not a better one.

    ``period_s`` is the time between two looks, ``asked_period_s`` the setting. ``stretched`` is
    why they differ. Threads that ran or waited less than ``least_s`` in the window have no sample
    of their own, and some of a pod with many threads have none either: ``unlisted`` counts them.
    ``knows_threads`` is false if the window's threads are unknown: its look failed, or is the first
    after a failed one. ``budget_cpu_ratio`` is the share of one core that observing may cost.
    """

    tier: str = "proc"
    reason: str = ""
    period_s: float = 0.0
    asked_period_s: float = 0.0
    stretched: str = ""
    least_s: float = 0.0
    unlisted: int = 0
    knows_threads: bool = True
    budget_cpu_ratio: float = 0.01


@frozen
class EngineEnd:
    """The last unrequested end of an engine: its kind, a summary, and a remedy."""

    kind: str
    summary: str
    remedy: str


@frozen
class PluginState:
    """One plugin's state in the host. ``failure`` is the last failure.

    ``state`` is active, degraded if parts were set aside, set_aside or not_allowed. ``lost`` lists
    those parts, each with the reason.
    """

    name: str
    version: str
    distribution: str
    hooks: tuple[str, ...]
    state: str
    failure: str = ""
    calls: int = 0
    time_spent_s: float = 0.0
    lost: tuple[str, ...] = ()

    @property
    def is_in_use(self) -> bool:
        """Whether the plugin is called, but for the parts that are set aside."""
        return self.state in ("active", "degraded")


@frozen
class Section:
    """An instrument's addition to a snapshot: plain JSON, with its own schema version."""

    schema_version: int
    content: Mapping[str, Any] = field(factory=dict, converter=read_only)


@frozen
class Snapshot:
    """The node over one window, from ``monotonic_s - window_s`` to ``monotonic_s``.

    ``threads`` are the threads that ran in the window, except those that ran too little to matter
    (``observing``). Only the busiest are published. ``pressure_events`` counts, by resource, the
    kernel's notifications of stalls since the agent's start. ``sections`` holds the additions by
    instrument. ``defects`` lists all that could not be read.
    """

    at: float
    monotonic_s: float
    window_s: float
    node: str
    machine: MachineShape
    status: Status
    threads: tuple[ThreadSample, ...] = ()
    pods: tuple[PodSample, ...] = ()
    layers: tuple[LayerSample, ...] = ()
    pressure: Mapping[str, Pressure] = field(factory=dict, converter=read_only)
    overhead: Overhead = Overhead()
    plan: LayerPlan | None = None
    violations: tuple[Violation, ...] = ()
    invariants: tuple[str, ...] = ()
    plugins: tuple[PluginState, ...] = ()
    profile_failures: tuple[ProfileFailure, ...] = ()
    defects: tuple[str, ...] = ()
    reserve_cores: int = 1
    steering: SteeringState = SteeringState()
    last_end: EngineEnd | None = None
    observing: Observing = Observing()
    pressure_events: Mapping[str, int] = field(factory=dict, converter=read_only)
    sections: Mapping[str, Section] = field(factory=dict, converter=read_only)
    trials: tuple[TrialState, ...] = ()
    schema_version: int = SCHEMA_VERSION
