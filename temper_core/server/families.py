"""The metric families of the core; ``docs/metrics.md`` is made from this table."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import frozen

from temper_core import __version__
from temper_core.records.histogram import Histogram
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import (
    LayerSample,
    Mode,
    Overhead,
    SafeModeReason,
    Snapshot,
    Status,
)
from temper_core.records.steering import SteeringState
from temper_core.records.tiers import Tier
from temper_core.server.view import Counters

CONTENTION_RATIO = 0.10
MILLICORES = 1000
WAYS = ("warm", "cold")

Values = Iterable[tuple[tuple[str, ...], float]]


@frozen
class Reading:
    """All that the core's metrics are made of, taken at one moment; ``age_s`` is the snapshot's."""

    snapshot: Snapshot | None
    plan: LayerPlan | None
    status: Status
    counters: Counters
    plugins: tuple[str, ...] = ()
    age_s: float | None = None

    @property
    def layers(self) -> tuple[LayerSample, ...]:
        """The layers as last observed."""
        return self.snapshot.layers if self.snapshot else ()

    @property
    def overhead(self) -> Overhead | None:
        """The agent's own cost as last observed."""
        return self.snapshot.overhead if self.snapshot else None


@frozen
class Family:
    """A metric family: ``read`` yields label values, in the order of ``labels``, and a value."""

    name: str
    help: str
    read: Callable[[Reading], Values]
    labels: tuple[str, ...] = ()
    kind: str = "gauge"


@frozen
class HistogramFamily:
    """A family of histograms: ``read`` returns them by the value of the one label."""

    name: str
    help: str
    read: Callable[[Reading], Mapping[str, Histogram]]
    labels: tuple[str]
    kind: str = "histogram"


def _by_tier(count: Mapping[Tier, float]) -> Values:
    return [((tier.value,), float(count.get(tier, 0))) for tier in Tier]


def _tier_pods(reading: Reading) -> Values:
    if reading.plan is not None:
        return _by_tier(Counter(a.tier for a in reading.plan.assignments))
    pods = reading.snapshot.pods if reading.snapshot else ()
    return _by_tier(Counter(pod.tier for pod in pods))


def _tier_requests(reading: Reading) -> Values:
    millis: Counter[Tier] = Counter()
    if reading.plan is None:
        return ()
    for assignment in reading.plan.assignments:
        millis[assignment.tier] += assignment.pod.cpu_request_millis
    return _by_tier({tier: total / MILLICORES for tier, total in millis.items()})


def _counted(counts: Mapping[str, int], always: Iterable[str] = ()) -> Values:
    names = dict.fromkeys([*always, *sorted(counts)])
    return [((name,), float(counts.get(name, 0))) for name in names]


def _modes(reading: Reading) -> Values:
    return [((mode.value,), float(reading.status.mode is mode)) for mode in Mode]


def _safe_mode_reasons(reading: Reading) -> Values:
    is_safe = reading.status.mode is Mode.SAFE_MODE
    return [
        ((reason.value,), float(is_safe and reading.status.reason == reason))
        for reason in SafeModeReason
    ]


def _pressure_ratios(reading: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
    pressures = reading.snapshot.pressure if reading.snapshot else {}
    for resource, pressure in pressures.items():
        for kind, line in (("some", pressure.some), ("full", pressure.full)):
            if line is not None:
                yield (resource, kind, "10s"), line.avg10
                yield (resource, kind, "60s"), line.avg60
                yield (resource, kind, "300s"), line.avg300


def _contention(reading: Reading) -> Values:
    pods = reading.snapshot.pods if reading.snapshot else ()
    contended = {
        pod.tier
        for pod in pods
        if "cpu" in pod.pressure and pod.pressure["cpu"].some.avg10 >= CONTENTION_RATIO
    }
    return _by_tier(dict.fromkeys(contended, 1.0))


def _violations(reading: Reading) -> Values:
    if reading.snapshot is None:
        return ()
    standing = Counter(violation.invariant for violation in reading.snapshot.violations)
    return _counted(standing, always=reading.snapshot.invariants)


def _overhead_memory(reading: Reading) -> Values:
    return [((), float(reading.overhead.memory_bytes))] if reading.overhead else ()


def _overhead_cpu(reading: Reading) -> Values:
    parts = reading.overhead.cpu_ratio if reading.overhead else {}
    return [((part,), ratio) for part, ratio in sorted(parts.items())]


def _threads(reading: Reading) -> Values:
    return [((), float(reading.overhead.threads_seen))] if reading.overhead else ()


def _steering(read: Callable[[SteeringState], float]) -> Callable[[Reading], Values]:
    return lambda reading: (
        [((), float(read(reading.snapshot.steering)))] if reading.snapshot else ()
    )


FAMILIES: tuple[Family | HistogramFamily, ...] = (
    Family(
        "temper_build_info",
        "1, with the agent's version.",
        lambda _: [((__version__,), 1.0)],
        ("version",),
    ),
    Family("temper_mode", "1 for the mode the agent is in, 0 for the others.", _modes, ("mode",)),
    Family(
        "temper_safe_mode",
        "1 for the reason the node is in safe mode, if it is.",
        _safe_mode_reasons,
        ("reason",),
    ),
    Family(
        "temper_config_generation",
        "Number of the configuration in force; 0 without one.",
        lambda r: [((), float(r.status.generation))],
    ),
    Family(
        "temper_reloads_total",
        "Reloads of the engine, by what caused them.",
        lambda r: _counted(r.counters.reloads),
        ("cause",),
        "counter",
    ),
    HistogramFamily(
        "temper_reload_stock_seconds",
        "Seconds that a planned change left the node to the stock scheduler, by its way.",
        lambda r: r.counters.stock_seconds,
        ("way",),
    ),
    Family(
        "temper_swaps_total",
        "Planned changes of the engine: warm, loaded beside the old one, or cold, after it.",
        lambda r: _counted(r.counters.swaps, always=WAYS),
        ("way",),
        "counter",
    ),
    Family(
        "temper_swap_failures_total",
        "Next engines that could not take over, by kind of their end.",
        lambda r: _counted(r.counters.swap_failures),
        ("kind",),
        "counter",
    ),
    Family(
        "temper_ejections_total",
        "Times the kernel threw the engine out, by kind of exit.",
        lambda r: _counted(r.counters.ejections),
        ("kind",),
        "counter",
    ),
    Family("temper_tier_pods", "Pods assigned to a tier.", _tier_pods, ("tier",)),
    Family(
        "temper_tier_cpu_request_cores",
        "Sum of the CPU requests of a tier's pods, in CPUs.",
        _tier_requests,
        ("tier",),
    ),
    Family(
        "temper_contention",
        "1 while a pod of the tier waits for CPU (PSI cpu some avg10) at least "
        f"{CONTENTION_RATIO:.2f} of the time, else 0.",
        _contention,
        ("tier",),
    ),
    Family(
        "temper_layer_cpus",
        "CPUs that a layer owns.",
        lambda r: [((layer.name,), float(len(layer.cpus))) for layer in r.layers],
        ("layer",),
    ),
    Family(
        "temper_layer_cpus_used",
        "CPUs that a layer kept busy in the last window.",
        lambda r: [((layer.name,), layer.cpus_used) for layer in r.layers],
        ("layer",),
    ),
    Family(
        "temper_layer_demoted",
        "1 for a layer that could not be fenced as its tier asks, else 0.",
        lambda r: [((layer.name,), float(layer.demoted)) for layer in r.layers],
        ("layer",),
    ),
    Family(
        "temper_steering",
        "1 while threads are steered into their layers by hints, 0 where the engine's own matchers "
        "do it.",
        _steering(lambda state: state.mode == "hints"),
    ),
    Family(
        "temper_steering_hints_written_total",
        "Hints that walks over the threads of the node had to write.",
        _steering(lambda state: state.steered),
        kind="counter",
    ),
    Family(
        "temper_steering_hints_corrected_total",
        "Hints that somebody else had changed, and walks have set right.",
        _steering(lambda state: state.corrected),
        kind="counter",
    ),
    Family(
        "temper_steering_kicks_total",
        "Threads that were reniced by one and back so that they follow their hint.",
        _steering(lambda state: state.kicked),
        kind="counter",
    ),
    Family(
        "temper_steering_threads_astray",
        "Threads that the engine has in another layer than their hint says.",
        _steering(lambda state: state.astray),
    ),
    Family(
        "temper_steering_failures_total",
        "Walks, table writes and decisions that failed.",
        _steering(lambda state: state.failures),
        kind="counter",
    ),
    Family(
        "temper_pressure_ratio",
        "The node's pressure stall information: share of time, 0 to 1.",
        _pressure_ratios,
        ("resource", "kind", "window"),
    ),
    Family(
        "temper_lint_violation",
        "Violations of an invariant that stand now.",
        _violations,
        ("invariant",),
    ),
    Family(
        "temper_profile_load_failures",
        "Profiles of that id that could not be loaded.",
        lambda r: _counted(r.counters.profile_failures),
        ("profile",),
    ),
    Family(
        "temper_plugin_failures_total",
        "Calls into a plugin that failed.",
        lambda r: _counted(r.counters.plugin_failures, always=r.plugins),
        ("plugin",),
        "counter",
    ),
    Family(
        "temper_overhead_cpu_ratio",
        "What the agent itself costs, as a share of one core.",
        _overhead_cpu,
        ("part",),
    ),
    Family(
        "temper_overhead_memory_bytes",
        "Resident memory of the agent.",
        _overhead_memory,
    ),
    Family("temper_threads", "Threads of the node that the last observation saw.", _threads),
    Family(
        "temper_snapshot_age_seconds",
        "Seconds since the last observation ended.",
        lambda r: [] if r.age_s is None else [((), r.age_s)],
    ),
)

DROPPED = Family(
    "temper_series_dropped_total",
    "Series left out of a scrape: over [observe] series_limit, or claimed twice; summed over all "
    "scrapes.",
    lambda _: (),
    kind="counter",
)
