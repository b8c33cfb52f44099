"""Families of the tiers and of the engine's layers, from the last observation."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from temper_core.metrics.exposition import COUNTER
from temper_core.metrics.families.reading import (
    NEVER,
    Family,
    Per,
    Reading,
    Values,
)
from temper_core.metrics.totals import LayerTotals, TierTotals
from temper_core.records.snapshots import LayerSample, PodSample
from temper_core.records.tiers import Tier

CONTENTION_RATIO = 0.10
MILLICORES = 1000
NO_ENGINE = "while no engine runs"


def _by_tier(values: Mapping[Tier, float]) -> Values:
    return [((tier.value,), float(values.get(tier, 0))) for tier in Tier]


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


def _contention(reading: Reading) -> Values:
    pods = reading.snapshot.pods if reading.snapshot else ()
    contended = {
        pod.tier
        for pod in pods
        if "cpu" in pod.pressure and pod.pressure["cpu"].some.avg10 >= CONTENTION_RATIO
    }
    return _by_tier(dict.fromkeys(contended, 1.0))


def _tier_sum(read: Callable[[PodSample], float]) -> Callable[[Reading], Values]:
    def read_all(reading: Reading) -> Values:
        if reading.snapshot is None:
            return ()
        sums: defaultdict[Tier, float] = defaultdict(float)
        for pod in reading.snapshot.pods:
            sums[pod.tier] += read(pod)
        return _by_tier(sums)

    return read_all


def _tier_total(read: Callable[[TierTotals], float]) -> Callable[[Reading], Values]:
    return lambda reading: [
        ((tier.value,), read(totals)) for tier, totals in reading.sums.tiers.items()
    ]


def _layer(read: Callable[[LayerSample], float | None]) -> Callable[[Reading], Values]:
    def read_all(reading: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
        for layer in reading.layers:
            value = read(layer)
            if value is not None:
                yield (layer.name,), value

    return read_all


def _layer_kinds(reading: Reading) -> Values:
    return [
        ((layer.name, layer.kind.value, layer.tier.value if layer.tier else ""), 1.0)
        for layer in reading.layers
    ]


def _layer_cpu(reading: Reading) -> Values:
    totals = reading.sums.layers
    return [
        ((layer.name,), totals.get(layer.name, LayerTotals()).cpu_s) for layer in reading.layers
    ]


TIERS = (
    Family(
        "temper_tier_pods",
        "Pods assigned to a tier.",
        _tier_pods,
        labels=("tier",),
        absent=NEVER,
        most=len(Tier),
    ),
    Family(
        "temper_tier_cpu_request_cores",
        "Sum of the CPU requests of a tier's pods, in CPUs.",
        _tier_requests,
        labels=("tier",),
        unit="cores",
        absent="before the first plan",
        most=len(Tier),
    ),
    Family(
        "temper_contention",
        "1 while a pod of the tier waits for CPU (PSI cpu some avg10) at least "
        f"{CONTENTION_RATIO:.2f} of the time, else 0.",
        _contention,
        labels=("tier",),
        absent=NEVER,
        most=len(Tier),
    ),
    Family(
        "temper_tier_cpus_used",
        "CPUs that a tier's pods kept busy in the last window.",
        _tier_sum(lambda pod: pod.cpu_used),
        labels=("tier",),
        unit="cpus",
        most=len(Tier),
    ),
    Family(
        "temper_tier_cpu_seconds_total",
        "CPU time of a tier's pods, including pods that left.",
        _tier_total(lambda totals: totals.cpu_s),
        labels=("tier",),
        kind=COUNTER,
        unit="seconds",
        most=len(Tier),
    ),
    Family(
        "temper_tier_run_delay_seconds_total",
        "Time that threads of a tier's pods waited for a CPU, all threads together.",
        _tier_total(lambda totals: totals.run_delay_s),
        labels=("tier",),
        kind=COUNTER,
        unit="seconds",
        most=len(Tier),
    ),
)

LAYERS = (
    Family(
        "temper_layer_cpus",
        "CPUs that a layer owns.",
        _layer(lambda layer: float(len(layer.cpus))),
        labels=("layer",),
        unit="cpus",
        absent=NO_ENGINE,
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_cpus_used",
        "CPUs that a layer kept busy in the last window.",
        _layer(lambda layer: layer.cpus_used),
        labels=("layer",),
        unit="cpus",
        absent=NO_ENGINE,
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_demoted",
        "1 for a layer that could not get the exclusive CPUs its tier requires, else 0.",
        _layer(lambda layer: float(layer.demoted)),
        labels=("layer",),
        absent=NO_ENGINE,
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_util_ratio",
        "CPUs a layer kept busy as a share of those it owns; above 1 it also ran on CPUs of other "
        "layers.",
        _layer(lambda layer: layer.util),
        labels=("layer",),
        unit="ratio",
        absent=f"for a layer that owns no CPU, and {NO_ENGINE}",
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_tasks",
        "Threads in a layer.",
        _layer(lambda layer: float(layer.tasks)),
        labels=("layer",),
        absent=NO_ENGINE,
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_fallback_ratio",
        "Share of a layer's scheduling events that broke its affinity, 0 to 1.",
        _layer(lambda layer: layer.fallback_ratio),
        labels=("layer",),
        unit="ratio",
        absent=NO_ENGINE,
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_outside_ratio",
        "Share of a layer's CPU time on CPUs that it did not own at the time, 0 to 1.",
        _layer(lambda layer: layer.outside_ratio),
        labels=("layer",),
        unit="ratio",
        absent="while no engine runs, or it does not count this",
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_info",
        "1, with a layer's kind, and its tier if the layer belongs to a single tier.",
        _layer_kinds,
        labels=("layer", "kind", "tier"),
        absent=NO_ENGINE,
        per=Per.LAYER,
    ),
    Family(
        "temper_layer_cpu_seconds_total",
        "CPU time that a layer used.",
        _layer_cpu,
        labels=("layer",),
        kind=COUNTER,
        unit="seconds",
        absent=NO_ENGINE,
        per=Per.LAYER,
    ),
)
