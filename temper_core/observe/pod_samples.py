"""Samples of a plan's pods over one window, from their cgroups and threads."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, evolve

from temper_core.observe.cgroup_usage import CgroupUsage
from temper_core.observe.places import Places
from temper_core.observe.samples import NS_PER_S
from temper_core.observe.thread_rows import ThreadRows
from temper_core.observe.throttling import added
from temper_core.records.plans import Assignment
from temper_core.records.snapshots import PodSample

US_PER_S = 1_000_000
EXPIRED = "expired"


@define(eq=False)
class ThreadTotals:
    """Sums over the threads of one pod. ``seen`` counts those that ran.

    ``runs`` is -1 if the tier does not count runs.
    """

    living: int = 0
    seen: int = 0
    run_ns: int = 0
    delay_ns: int = 0
    runs: int = 0


NOBODY = ThreadTotals()
NO_USAGE = CgroupUsage()


def totals_by_pod(places: Places, rows: ThreadRows) -> Mapping[str, ThreadTotals]:
    """Add up rows and rests by pod uid. Threads outside of pods have the empty uid."""
    totals: defaultdict[str, ThreadTotals] = defaultdict(ThreadTotals)
    for cgroup, threads in rows.threads_by_cgroup.items():
        totals[places.of(cgroup, "").uid].living += threads
    for row in rows.rows:
        total = totals[places.of(row.cgroup, row.process).uid]
        total.seen += 1
        total.run_ns += row.run_ns
        total.delay_ns += row.delay_ns
        total.runs = -1 if row.runs < 0 else total.runs + row.runs
    for cgroup, rest in rows.rest.items():
        total = totals[places.of(cgroup, "").uid]
        total.seen += rest.threads
        total.run_ns += rest.run_ns
        total.delay_ns += rest.delay_ns
        total.runs += rest.runs
    return totals


def with_coverage(
    pods: Iterable[PodSample], covered: Mapping[tuple[str, str], float]
) -> tuple[PodSample, ...]:
    """Return the samples with the *covered* share of each, by namespace and name."""
    if not covered:
        return tuple(pods)
    return tuple(
        evolve(pod, profile_coverage=covered[pod.namespace, pod.pod])
        if (pod.namespace, pod.pod) in covered
        else pod
        for pod in pods
    )


def pod_samples(
    places: Places, rows: ThreadRows, usage: Mapping[str, CgroupUsage], window_s: float
) -> tuple[PodSample, ...]:
    """Return one sample per pod of the plan."""
    if places.plan is None or not places.plan.assignments:
        return ()
    totals = totals_by_pod(places, rows)
    return tuple(
        _pod_sample(
            assignment,
            totals.get(assignment.pod.uid, NOBODY),
            _together([usage[path] for path in places.pods[assignment.pod.uid] if path in usage]),
            window_s,
            knows_threads=rows.tells_who_ran and rows.sees_all,
        )
        for assignment in places.plan.assignments
    )


def _pod_sample(
    assignment: Assignment,
    threads: ThreadTotals,
    used: CgroupUsage,
    window_s: float,
    *,
    knows_threads: bool,
) -> PodSample:
    pod, profile = assignment.pod, assignment.profile
    rate = 1 / window_s if window_s > 0 else 0.0
    seen_s = threads.run_ns / NS_PER_S
    # The cgroup also counts threads that began and ended between two looks.
    used_s = seen_s if used.cpu_us is None else used.cpu_us / US_PER_S
    short_lived_s = max(0.0, used_s - seen_s) if knows_threads else 0.0
    throttled = used.throttled
    return PodSample(
        pod.namespace,
        pod.name,
        pod.uid,
        assignment.tier,
        # A workload that is matched by process has no cgroup that counts its threads.
        max(threads.living, threads.seen),
        used_s * rate,
        throttled.throttled_periods / throttled.periods if throttled.periods else 0.0,
        used.memory_bytes,
        profile.profile.id if profile else "",
        used.pressure,
        short_lived_s * rate,
        threads.delay_ns / NS_PER_S * rate,
        threads.runs,
        throttled.throttled_us / US_PER_S,
        used.limits.quota_cores,
        used.limits.weight,
        used.limits.cpuset,
        _unthrottled(used, window_s),
        None,
        *_profile_remark(assignment),
    )


def _profile_remark(assignment: Assignment) -> tuple[str, str]:
    """Return code and reason if a profile is not applied, or is applied with a reservation."""
    if assignment.profile_code is not None:
        return assignment.profile_code.value, assignment.profile_reason
    is_expired = assignment.profile is not None and assignment.profile.expired
    return (EXPIRED, assignment.profile_reason) if is_expired else ("", "")


def _unthrottled(used: CgroupUsage, window_s: float) -> float | None:
    """Return the share of the window in which a thread waited without being throttled."""
    if used.stalled_us is None or window_s <= 0:
        return None
    waited_us = max(0.0, used.stalled_us - used.throttled.explained_us)
    return min(1.0, waited_us / US_PER_S / window_s)


def _together(usages: Sequence[CgroupUsage]) -> CgroupUsage:
    """Add up the cgroups of one workload. Limits and pressure are those that waited longest.

    Waits may overlap and cannot be added, so the cgroup with the longest wait represents all.
    """
    if len(usages) == 1:
        return usages[0]
    if not usages:
        return NO_USAGE
    counted = [usage.cpu_us for usage in usages if usage.cpu_us is not None]
    sizes = [usage.memory_bytes for usage in usages if usage.memory_bytes >= 0]
    speaker = max(usages, key=_waited_us)
    return evolve(
        speaker,
        cpu_us=sum(counted) if counted else None,
        memory_bytes=sum(sizes) if sizes else -1,
        throttled=evolve(
            added([usage.throttled for usage in usages]),
            explained_us=speaker.throttled.explained_us,
        ),
    )


def _waited_us(usage: CgroupUsage) -> float:
    if usage.stalled_us is None:
        return -1.0
    return max(0.0, usage.stalled_us - usage.throttled.explained_us)
