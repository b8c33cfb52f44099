"""The questions of a classification: one query of Prometheus for each measure, for all pods."""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from attrs import frozen

from temper_plugin_power.workloads.energy import Dialect
from temper_prometheus.durations import as_duration

Place = tuple[str, str]
"""The labels that hold the namespace and the name of a pod."""
USUAL: Place = ("namespace", "pod")
EXPORTED: Place = ("exported_namespace", "exported_pod")
"""Of a scrape without ``honor_labels``, whose target has labels of the same names. They come first,
since the others then name the exporter."""
OLD_KEPLER: tuple[Place, ...] = (
    ("container_namespace", "pod_name"),
    ("exported_namespace", "pod_name"),
    ("namespace", "pod_name"),
)
"""Relabelling may turn ``container_namespace`` into ``namespace``."""
NEW_KEPLER: tuple[Place, ...] = (("pod_namespace", "pod_name"),)

GPU_UTIL = "DCGM_FI_DEV_GPU_UTIL"
OLD_ZONES = {zone: f"kepler_container_{zone}_joules_total" for zone in ("package", "dram", "gpu")}
NEW_CPU, NEW_GPU = "kepler_pod_cpu_joules_total", "kepler_pod_gpu_watts"
PSI_IO = "container_pressure_io_waiting_seconds_total"
PSI_MEMORY = "container_pressure_memory_waiting_seconds_total"
COUNTERS = {
    measure: f"temper_pod_{measure}_total" for measure in ("cycles", "instructions", "llc_misses")
}
RUN_WAIT = "temper_pod_run_delay_seconds_total"
THREADS = "temper_pod_threads"
THREAD_CPU = "temper_pod_thread_cpu_seconds_total"
OPTIONAL = (
    *(GPU_UTIL, *OLD_ZONES.values(), NEW_CPU, NEW_GPU, PSI_IO, PSI_MEMORY),
    *(*COUNTERS.values(), RUN_WAIT, THREADS, THREAD_CPU),
)
"""Families that are asked for only where they are exported."""
FAMILIES = f'count by (__name__) ({{__name__=~"{"|".join(OPTIONAL)}"}})'
"""Asks which of them have samples now, which are at most some minutes old."""
_CONTAINERS = 'container!="POD",container!=""'
"""Without the series of the pod as a whole, which would count twice."""

Combine = Callable[[Sequence[float]], float]


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return sum(values) / len(values)


@frozen
class Question:
    """A query whose answer is a measure of each pod."""

    measure: str
    """The field of PodMeasures."""
    query: str
    places: tuple[Place, ...]
    combine: Combine = sum
    """Of several series about one pod."""


def dialect_of(families: AbstractSet[str], energy: str = "auto") -> Dialect:
    """Return how energy is attributed, by the *families* that have samples.

    *energy* is a dialect that is known, ``off``, or ``auto``. Of both the older one is chosen, as
    it has more detail.
    """
    if energy == "off":
        return Dialect.NONE
    if energy != "auto":
        return Dialect(energy)
    if OLD_ZONES["package"] in families:
        return Dialect.OLD
    return Dialect.NEW if NEW_CPU in families else Dialect.NONE


def energy_sample(dialect: Dialect) -> str:
    """Return a query for one series of the energy of pods, empty without a dialect."""
    family = {Dialect.OLD: OLD_ZONES["package"], Dialect.NEW: NEW_CPU}.get(dialect)
    return "" if family is None else f"topk(1, {family})"


def questions(families: AbstractSet[str], dialect: Dialect, window_s: int) -> Iterator[Question]:
    """Yield the questions about rates over *window_s* seconds, for the *families* that exist."""
    window = as_duration(window_s)
    usage = f"rate(container_cpu_usage_seconds_total{{{_CONTAINERS}}}[{window}])"
    yield _question("cpu_rate", "sum", usage, (USUAL,))
    held = f"container_memory_working_set_bytes{{{_CONTAINERS}}}"
    yield _question("mem_working_set", "sum", held, (USUAL,))
    if GPU_UTIL in families:
        yield _question("dcgm_gpu_util", "avg", GPU_UTIL, (EXPORTED, USUAL), mean)
    for measure, family in (("psi_io", PSI_IO), ("psi_memory", PSI_MEMORY)):
        if family in families:
            rate = f"rate({family}{{{_CONTAINERS}}}[{window}])"
            yield _question(measure, "max", rate, (USUAL,), max)
    yield from _of_temper(families, window)
    if dialect is Dialect.OLD:
        yield from _of_old_kepler(families, window)
    elif dialect is Dialect.NEW:
        yield from _of_new_kepler(families, window)


def _of_temper(families: AbstractSet[str], window: str) -> Iterator[Question]:
    """Yield the questions about what Temper's agents export."""
    places = (EXPORTED, USUAL)
    for measure, family in (*COUNTERS.items(), ("run_wait", RUN_WAIT)):
        if family in families:
            yield _question(measure, "sum", f"rate({family}[{window}])", places)
    if THREADS in families:
        yield _question("threads", "sum", THREADS, places)
    if THREAD_CPU in families:
        named = f'rate({THREAD_CPU}{{thread!="rest"}}[{window}])'
        yield _question("busiest_thread", "max", named, places, max)


def _of_old_kepler(families: AbstractSet[str], window: str) -> Iterator[Question]:
    for zone, family in OLD_ZONES.items():
        if family in families:
            rate = f"rate({family}[{window}])"
            yield _question(f"kepler_{zone}_rate", "sum", rate, OLD_KEPLER)


def _of_new_kepler(families: AbstractSet[str], window: str) -> Iterator[Question]:
    """Yield a question for each zone. Zones are never added: package contains core and uncore."""
    if NEW_CPU in families:
        for zone in ("package", "dram"):
            rate = f'rate({NEW_CPU}{{state="running",zone="{zone}"}}[{window}])'
            yield _question(f"kepler_{zone}_rate", "sum", rate, NEW_KEPLER)
    if NEW_GPU in families:
        watts = f'avg_over_time({NEW_GPU}{{state!="terminated"}}[{window}])'
        yield _question("kepler_gpu_rate", "sum", watts, NEW_KEPLER)


def _question(
    measure: str, operator: str, inner: str, places: tuple[Place, ...], combine: Combine = sum
) -> Question:
    labels = dict.fromkeys(label for place in places for label in place)
    return Question(measure, f"{operator} by ({', '.join(labels)}) ({inner})", places, combine)
