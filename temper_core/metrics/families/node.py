"""Families of the node, its invariants, and the cost of observation."""

from collections import Counter
from collections.abc import Callable, Iterator

from temper_core.metrics.exposition import COUNTER
from temper_core.metrics.families.agent import counted
from temper_core.metrics.families.reading import Family, Per, Reading, Values
from temper_core.records.lint import Severity
from temper_core.records.snapshots import InstrumentCost, Overhead, Snapshot
from temper_core.records.steering import SteeringState

US_PER_S = 1_000_000
RESOURCES = 3
KINDS = 2
SPANS = 3
OBSERVATION_TIERS = ("bpf", "bpf-iter", "proc")
MOST_PARTS = 24
"""Series of the agent's cost by part. Each part has two, in user space and in the kernel.

Each instrument adds up to ten: itself and four parts.
"""
MOST_INSTRUMENTS = 16
NO_PSI = "without PSI in the kernel"
NO_INSTRUMENT = "without instruments"


def _pressure_ratios(reading: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
    pressures = reading.snapshot.pressure if reading.snapshot else {}
    for resource, pressure in pressures.items():
        for kind, line in (("some", pressure.some), ("full", pressure.full)):
            if line is not None:
                yield (resource, kind, "10s"), line.avg10
                yield (resource, kind, "60s"), line.avg60
                yield (resource, kind, "300s"), line.avg300


def _pressure_seconds(reading: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
    pressures = reading.snapshot.pressure if reading.snapshot else {}
    for resource, pressure in pressures.items():
        for kind, line in (("some", pressure.some), ("full", pressure.full)):
            if line is not None:
                yield (resource, kind), line.total_us / US_PER_S


def _violations(reading: Reading) -> Values:
    if reading.snapshot is None:
        return ()
    standing = Counter(violation.invariant for violation in reading.snapshot.violations)
    return counted(standing, always=reading.snapshot.invariants)


def _severities(reading: Reading) -> Values:
    if reading.snapshot is None:
        return ()
    standing = Counter(str(violation.severity) for violation in reading.snapshot.violations)
    return counted(standing, always=[severity.value for severity in Severity])


def _observed(read: Callable[[Snapshot], float]) -> Callable[[Reading], Values]:
    return lambda reading: [((), float(read(reading.snapshot)))] if reading.snapshot else ()


def _overhead(read: Callable[[Overhead], float]) -> Callable[[Reading], Values]:
    return lambda reading: [((), float(read(reading.overhead)))] if reading.overhead else ()


def _overhead_cpu(reading: Reading) -> Values:
    parts = reading.overhead.cpu_ratio if reading.overhead else {}
    return [((part,), ratio) for part, ratio in sorted(parts.items())]


def _instruments(read: Callable[[InstrumentCost], float]) -> Callable[[Reading], Values]:
    def values(reading: Reading) -> Values:
        costs = reading.overhead.instruments if reading.overhead else {}
        return [((name,), float(read(cost))) for name, cost in sorted(costs.items())]

    return values


def _steering(read: Callable[[SteeringState], float]) -> Callable[[Reading], Values]:
    return _observed(lambda snapshot: read(snapshot.steering))


def _observation_tiers(reading: Reading) -> Values:
    if reading.snapshot is None:
        return ()
    tier = reading.snapshot.observing.tier
    return [((name,), float(name == tier)) for name in dict.fromkeys((*OBSERVATION_TIERS, tier))]


LINT = (
    Family(
        "temper_lint_violation",
        "Current violations of an invariant.",
        _violations,
        labels=("invariant",),
        per=Per.INVARIANT,
    ),
    Family(
        "temper_lint_severity_violations",
        "Current violations of a severity.",
        _severities,
        labels=("severity",),
        most=len(Severity),
    ),
)

STEERING = (
    Family(
        "temper_steering",
        "1 while hints steer threads into their layers, 0 while the engine's own matchers do.",
        _steering(lambda state: state.mode == "hints"),
    ),
    Family(
        "temper_steering_hints_written_total",
        "Hints written by walks over the threads of the node.",
        _steering(lambda state: state.steered),
        kind=COUNTER,
    ),
    Family(
        "temper_steering_hints_corrected_total",
        "Hints that another writer had changed and a walk restored.",
        _steering(lambda state: state.corrected),
        kind=COUNTER,
    ),
    Family(
        "temper_steering_kicks_total",
        "Threads that were reniced by one and back so that the engine applies their hint.",
        _steering(lambda state: state.kicked),
        kind=COUNTER,
    ),
    Family(
        "temper_steering_threads_astray",
        "Threads that are in another layer than their hint names.",
        _steering(lambda state: state.astray),
    ),
    Family(
        "temper_steering_threads_niced",
        "Threads of boost and latency groups whose nice value is changed now.",
        _steering(lambda state: state.niced),
    ),
    Family(
        "temper_steering_failures_total",
        "Walks, table writes and decisions that failed.",
        _steering(lambda state: state.failures),
        kind=COUNTER,
    ),
)

PRESSURE = (
    Family(
        "temper_pressure_ratio",
        "The node's pressure stall information: share of time, 0 to 1.",
        _pressure_ratios,
        labels=("resource", "kind", "window"),
        unit="ratio",
        absent=NO_PSI,
        most=RESOURCES * KINDS * SPANS,
    ),
    Family(
        "temper_pressure_seconds_total",
        "The node's pressure stall information: time in which some or all tasks were stalled.",
        _pressure_seconds,
        labels=("resource", "kind"),
        kind=COUNTER,
        unit="seconds",
        absent=NO_PSI,
        most=RESOURCES * KINDS,
    ),
    Family(
        "temper_pressure_events_total",
        "Stalls on a resource of the node that a PSI trigger reported.",
        lambda r: counted(r.snapshot.pressure_events if r.snapshot else {}),
        labels=("resource",),
        kind=COUNTER,
        absent="before the first report of a resource, or where PSI has no triggers",
        most=RESOURCES,
    ),
)

OBSERVING = (
    Family(
        "temper_threads",
        "Threads of the node that the last observation saw.",
        _overhead(lambda overhead: overhead.threads_seen),
    ),
    Family(
        "temper_observe_tier",
        "1 for the tier of observation in use (bpf, bpf-iter, proc), 0 for the others.",
        _observation_tiers,
        labels=("tier",),
        most=len(OBSERVATION_TIERS),
    ),
    Family(
        "temper_observe_period_seconds",
        "Actual seconds between two observations.",
        _observed(lambda snapshot: snapshot.observing.period_s or snapshot.overhead.period_s),
        unit="seconds",
    ),
    Family(
        "temper_observe_asked_period_seconds",
        "Configured seconds between two observations, [observe] period_s.",
        _observed(lambda snapshot: snapshot.observing.asked_period_s),
        unit="seconds",
    ),
    Family(
        "temper_observe_stretched",
        "1 while the period is longer than configured because observation costs too much, else 0.",
        _observed(lambda snapshot: bool(snapshot.observing.stretched)),
    ),
    Family(
        "temper_observe_unlisted_threads",
        "Threads that ran too little in the window to be listed one by one.",
        _observed(lambda snapshot: snapshot.observing.unlisted),
    ),
    Family(
        "temper_observe_defects",
        "Inputs that could not be read in the last observation; /observe names them.",
        _observed(lambda snapshot: len(snapshot.defects)),
    ),
    Family(
        "temper_observe_seconds_total",
        "Seconds covered by all observed windows; constant while nothing is observed.",
        lambda r: [((), r.sums.observed_s)] if r.snapshot else (),
        kind=COUNTER,
        unit="seconds",
    ),
)

OVERHEAD = (
    Family(
        "temper_overhead_cpu_ratio",
        "CPU use of the agent itself, by part, as a share of one core.",
        _overhead_cpu,
        labels=("part",),
        unit="ratio",
        most=MOST_PARTS,
    ),
    Family(
        "temper_overhead_cpu_seconds_total",
        "CPU time of the agent itself, by part, in user space and in the kernel.",
        lambda r: [((part,), spent_s) for part, spent_s in sorted(r.sums.overhead_s.items())],
        labels=("part",),
        kind=COUNTER,
        unit="seconds",
        most=MOST_PARTS,
    ),
    Family(
        "temper_overhead_bpf_cpu_ratio",
        "CPU use of the agent inside BPF programs, as a share of one core.",
        _overhead(lambda overhead: overhead.bpf_cpu_ratio),
        unit="ratio",
    ),
    Family(
        "temper_overhead_bpf_cpu_seconds_total",
        "CPU time of the agent inside BPF programs.",
        lambda r: [((), r.sums.bpf_s)] if r.snapshot else (),
        kind=COUNTER,
        unit="seconds",
    ),
    Family(
        "temper_overhead_memory_bytes",
        "Resident memory of the agent.",
        _overhead(lambda overhead: overhead.memory_bytes),
        unit="bytes",
    ),
    Family(
        "temper_overhead_descriptors",
        "Open file descriptors of the agent.",
        _overhead(lambda overhead: overhead.descriptors),
    ),
    Family(
        "temper_overhead_tick_seconds",
        "CPU time of the last observation.",
        _overhead(lambda overhead: overhead.tick_s),
        unit="seconds",
    ),
    Family(
        "temper_engine_memory_bytes",
        "Resident memory of the engine, 0 while none runs.",
        _overhead(lambda overhead: overhead.engine_memory_bytes),
        unit="bytes",
    ),
)

INSTRUMENTS = (
    Family(
        "temper_instrument_state_bytes",
        "Size of the files in an instrument's state directory, measured every minute.",
        _instruments(lambda cost: cost.state_bytes),
        labels=("instrument",),
        unit="bytes",
        absent=NO_INSTRUMENT,
        most=MOST_INSTRUMENTS,
    ),
    Family(
        "temper_instrument_state_limit_bytes",
        "Size limit of an instrument's state directory; the oldest files beyond it are removed.",
        _instruments(lambda cost: cost.state_limit_bytes),
        labels=("instrument",),
        unit="bytes",
        absent=NO_INSTRUMENT,
        most=MOST_INSTRUMENTS,
    ),
    Family(
        "temper_instrument_helpers",
        "Running helper processes of an instrument.",
        _instruments(lambda cost: cost.helpers),
        labels=("instrument",),
        absent=NO_INSTRUMENT,
        most=MOST_INSTRUMENTS,
    ),
    Family(
        "temper_instrument_helper_memory_bytes",
        "Resident memory of an instrument's helper processes.",
        _instruments(lambda cost: cost.helper_memory_bytes),
        labels=("instrument",),
        unit="bytes",
        absent=NO_INSTRUMENT,
        most=MOST_INSTRUMENTS,
    ),
    Family(
        "temper_instrument_helper_cpu_seconds_total",
        "CPU time of an instrument's helper processes, which temper_overhead_cpu_* excludes.",
        _instruments(lambda cost: cost.helper_cpu_s),
        labels=("instrument",),
        kind=COUNTER,
        unit="seconds",
        absent=NO_INSTRUMENT,
        most=MOST_INSTRUMENTS,
    ),
)
