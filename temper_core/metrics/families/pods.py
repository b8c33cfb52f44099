"""Families of each pod, and of its threads by name, from the last observation."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from temper_core.metrics.exposition import COUNTER
from temper_core.metrics.families.reading import (
    POD_LABELS,
    PodCountFamily,
    PodDetailFamily,
    PodFamily,
    PodReading,
)
from temper_core.metrics.label_text import label, readable
from temper_core.metrics.thread_totals import TOP_NAMES

US_PER_S = 1_000_000
MOST_STALLS = 6
GONE = "once the pod has left"


def _info(pod: PodReading) -> Iterable[tuple[str, float]]:
    sample = pod.sample
    tier, profile = label("tier", sample.tier.value), label("profile", readable(sample.profile))
    return ((f"{tier},{profile}", 1.0),)


def _coverage(pod: PodReading) -> Iterable[tuple[str, float]]:
    ratio = pod.sample.profile_coverage
    if ratio is None:
        return ()
    return ((label("profile", readable(pod.sample.profile)), ratio),)


def _stalls(pod: PodReading) -> Iterator[tuple[str, float]]:
    for resource, pressure in pod.sample.pressure.items():
        yield _stall_labels(resource, "some"), pressure.some.total_us / US_PER_S
        if pressure.full is not None:
            yield _stall_labels(resource, "full"), pressure.full.total_us / US_PER_S


@lru_cache(maxsize=64)
def _stall_labels(resource: str, kind: str) -> str:
    return f"{label('resource', resource)},{label('kind', kind)}"


def _by_name(totals: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    return [(label("thread", name), seconds) for name, seconds in totals.items()]


PODS = (
    PodDetailFamily(
        "temper_pod_info",
        "1, with a pod's tier and its profile, if any.",
        _info,
        labels=(*POD_LABELS, "tier", "profile"),
        absent=GONE,
    ),
    PodDetailFamily(
        "temper_profile_coverage_ratio",
        "Share of a pod's CPU time in the last window that was used by threads which its profile "
        "matches, 0 to 1.",
        _coverage,
        labels=(*POD_LABELS, "profile"),
        unit="ratio",
        absent="without a profile, or if it is unknown what became of a tenth of the CPU time: "
        "user space is yet to decide, or the threads were too short-lived to be seen",
    ),
    PodFamily(
        "temper_pod_cpus_used",
        "CPUs that a pod kept busy in the last window.",
        lambda pod: pod.sample.cpu_used,
        unit="cpus",
        absent=GONE,
    ),
    PodFamily(
        "temper_pod_cpu_seconds_total",
        "CPU time of a pod since the agent first saw it.",
        lambda pod: pod.totals.cpu_s,
        kind=COUNTER,
        unit="seconds",
        absent=GONE,
    ),
    PodFamily(
        "temper_pod_run_delay_seconds_total",
        "Time that a pod's threads waited for a CPU, all threads together.",
        lambda pod: pod.totals.run_delay_s,
        kind=COUNTER,
        unit="seconds",
        absent=GONE,
    ),
    PodFamily(
        "temper_pod_short_lived_cpu_seconds_total",
        "CPU time of a pod's threads that began and ended between two observations.",
        lambda pod: pod.totals.short_lived_s,
        kind=COUNTER,
        unit="seconds",
        absent=GONE,
    ),
    PodCountFamily(
        "temper_pod_switches_total",
        "Context switches of a pod's threads.",
        lambda pod: pod.totals.switches,
        kind=COUNTER,
        absent=f"where the tier of observation does not count them, and {GONE}",
    ),
    PodCountFamily(
        "temper_pod_threads",
        "Threads of a pod.",
        lambda pod: pod.sample.threads,
        absent=GONE,
    ),
    PodCountFamily(
        "temper_pod_memory_bytes",
        "Memory charged to a pod's cgroup.",
        lambda pod: pod.sample.memory_bytes,
        unit="bytes",
        absent=f"where no cgroup accounts for it, and {GONE}",
    ),
    PodFamily(
        "temper_pod_throttled_ratio",
        "Share of its quota periods in which a pod was throttled, in the last window, 0 to 1.",
        lambda pod: pod.sample.throttled_ratio,
        unit="ratio",
        absent=GONE,
    ),
    PodFamily(
        "temper_pod_throttled_seconds_total",
        "Time that a pod was throttled by its CPU quota, summed over CPUs.",
        lambda pod: pod.totals.throttled_s,
        kind=COUNTER,
        unit="seconds",
        absent=GONE,
    ),
    PodFamily(
        "temper_pod_quota_cores",
        "A pod's CPU quota, in CPUs.",
        lambda pod: pod.sample.quota_cores,
        unit="cores",
        absent="for a pod without a quota",
    ),
    PodFamily(
        "temper_pod_unthrottled_pressure_ratio",
        "Share of the last window in which a pod's threads waited for a CPU (PSI cpu some), minus "
        "the share that throttling explains.",
        lambda pod: pod.sample.unthrottled_pressure,
        unit="ratio",
        absent="without PSI of the pod",
    ),
    PodDetailFamily(
        "temper_pod_pressure_seconds_total",
        "A pod's pressure stall information: time in which some or all of its tasks were stalled.",
        _stalls,
        labels=(*POD_LABELS, "resource", "kind"),
        kind=COUNTER,
        unit="seconds",
        absent="without PSI of the pod",
        most=MOST_STALLS,
    ),
)

THREADS = (
    PodDetailFamily(
        "temper_pod_thread_cpu_seconds_total",
        f"CPU time of a pod's threads by name without numbers: the {TOP_NAMES} busiest names, "
        "each from the time it became one of them, and the rest.",
        lambda pod: _by_name(pod.totals.threads.cpu_s),
        labels=(*POD_LABELS, "thread"),
        kind=COUNTER,
        unit="seconds",
        absent="before a pod's second observation",
        most=TOP_NAMES + 1,
    ),
    PodDetailFamily(
        "temper_pod_thread_run_delay_seconds_total",
        "Time that a pod's threads waited for a CPU, for the same names.",
        lambda pod: _by_name(pod.totals.threads.run_delay_s),
        labels=(*POD_LABELS, "thread"),
        kind=COUNTER,
        unit="seconds",
        absent="before a pod's second observation",
        most=TOP_NAMES + 1,
    ),
)
