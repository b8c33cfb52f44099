"""What was seen of the node in one observation window."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from temper_core.records.lint import Violation
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.profiles import ProfileFailure
from temper_core.records.steering import SteeringState
from temper_core.records.tiers import LayerKind, Tier
from temper_core.records.trials import TrialState

SCHEMA_VERSION = 1


class Mode(StrEnum):
    """What the agent does to the kernel right now."""

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
    """The agent's state; ``reason`` is a SafeModeReason, or why it only observes."""

    mode: Mode
    reason: str = ""
    detail: str = ""
    generation: int = 0
    engine: str = ""
    since: float = 0.0


@frozen(slots=False)
class ThreadSample:
    """One thread over one window.

    ``cpu_used`` in CPUs (1.0 = one CPU busy throughout), ``run_delay_ratio`` the time spent
    runnable but waiting, as a share of the window. ``layer`` is where the engine itself has the
    thread (``layer_is_known``) or where it is inferred to be, ``expected_layer`` where the plan
    wants it, ``hinted_layer`` where its hint sends it; all empty without an engine.
    ``start_ticks`` tells a reused tid from its predecessor.

    Counts are of the window, -1 where the tier of observation cannot tell: ``runs`` (times it was
    given a CPU), ``voluntary`` and ``involuntary`` switches, ``migrations``. ``policy`` is
    sched(7)'s name (``other``, ``fifo``, ...), empty if unknown; ``affinity`` the CPUs it is bound
    to, empty where it may use all; ``waiting_s`` how long it had waited when it was looked at.
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
    """One pod over one window; throttling is of the kernel's CFS quota.

    ``cpu_used`` and ``run_delay`` are in CPUs; ``short_lived_cpu_used`` is the part of it that ran
    in threads that came and went between two looks. ``switches`` is -1 where the tier of
    observation counts none, ``memory_bytes`` where no cgroup accounts for it. ``throttled_s`` sums
    over CPUs. ``quota_cores``
    and ``weight`` are what the cgroup asks the kernel for (None where nothing is asked), ``cpuset``
    the CPUs it is confined to, empty for all. ``unthrottled_pressure`` is the share of the window
    in which somebody waited for a CPU (PSI cpu ``some``) less what throttling explains of it.
    ``profile_coverage`` is the share of the CPU time of its threads in those that a match of the
    profile takes; ``profile_code`` says why none is applied, or what is odd about the one that is
    (``ProfileCode``, or ``expired``), and ``profile_reason`` says it in words.
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
    pressure: Mapping[str, "Pressure"] = field(factory=dict)
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


@frozen
class LayerSample:
    """One layer over one window, as the engine counts it; ``util`` is None if it owns no CPU.

    ``fallback_ratio`` is the share of scheduling events that broke the layer's affinity.
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


@frozen
class PressureLine:
    """One line of a PSI file; averages as ratios 0..1, total in microseconds."""

    avg10: float
    avg60: float
    avg300: float
    total_us: int


@frozen
class Pressure:
    """PSI of one resource; a kernel without a ``full`` line for it leaves that None."""

    some: PressureLine
    full: PressureLine | None = None


@frozen
class InstrumentCost:
    """What an instrument costs besides its line of the agent's own CPU time.

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

    ``bpf_cpu_ratio`` is the part of ``cpu_ratio`` that ran inside BPF programs. ``series`` are
    those of the last scrape. ``instruments`` have, by name, what runs and lies outside the agent.
    """

    cpu_ratio: Mapping[str, float] = field(factory=dict)
    memory_bytes: int = 0
    engine_memory_bytes: int = 0
    period_s: float = 0.0
    tick_s: float = 0.0
    threads_seen: int = 0
    descriptors: int = 0
    bpf_cpu_ratio: float = 0.0
    series: int = 0
    instruments: Mapping[str, InstrumentCost] = field(factory=dict)


@frozen
class Observing:
    """How the node is looked at: the tier of observation, and why it is not a better one.

    ``period_s`` is the time between two looks, ``asked_period_s`` the setting; ``stretched`` says
    why they differ. Threads that ran or waited less than ``least_s`` in the window have no sample
    of their own: ``unlisted`` counts them. ``knows_threads`` is false for a window of which
    it is not known who ran: its look failed, or is the first after one that did.
    ``budget_cpu_ratio`` is the share of one core that looking may cost.
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
    """How the last engine that ended unasked did: kind, what happened, and what to do about it."""

    kind: str
    summary: str
    remedy: str


@frozen
class PluginState:
    """One plugin as the host knows it; ``failure`` is what failed last.

    ``lost`` says which parts of it were set aside, where not the whole plugin was, and why.
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


@frozen
class Section:
    """What an instrument adds to a snapshot: plain JSON, with a schema version of its own."""

    schema_version: int
    content: Mapping[str, Any] = field(factory=dict)


@frozen
class Snapshot:
    """The node over one window, from ``monotonic_s - window_s`` to ``monotonic_s``.

    ``threads`` are the threads that ran in the window, but for those that ran too little to matter
    (``observing``); what is published is the busiest. ``pressure_events`` counts, by resource, how
    often the kernel has told of stalls since the agent's start. ``sections`` are by instrument
    what it adds.
    ``defects`` name what could not be read, so that nothing is missing in silence.
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
    pressure: Mapping[str, Pressure] = field(factory=dict)
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
    pressure_events: Mapping[str, int] = field(factory=dict)
    sections: Mapping[str, Section] = field(factory=dict)
    trials: tuple[TrialState, ...] = ()
    schema_version: int = SCHEMA_VERSION
