"""The pods of a plan over one window, from their cgroups and their threads."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from attrs import define

from temper_core.observe.cgroup_limits import NO_LIMITS
from temper_core.observe.cgroup_usage import CgroupUsage
from temper_core.observe.places import Places
from temper_core.observe.samples import NS_PER_S
from temper_core.observe.thread_rows import ThreadRows
from temper_core.records.plans import Assignment
from temper_core.records.snapshots import PodSample

US_PER_S = 1_000_000


@define(eq=False)
class ThreadTotals:
    """What the threads of one pod did together; ``seen`` are those that ran."""

    living: int = 0
    seen: int = 0
    run_ns: int = 0
    delay_ns: int = 0
    runs: int = 0


NOBODY = ThreadTotals()


def totals_by_pod(places: Places, rows: ThreadRows) -> Mapping[str, ThreadTotals]:
    """Add up rows and rests by the pods' uids; threads of no pod are under the empty one."""
    totals: defaultdict[str, ThreadTotals] = defaultdict(ThreadTotals)
    for cgroup, threads in rows.threads_by_cgroup.items():
        totals[places.of(cgroup, "").uid].living += threads
    for row in rows.rows:
        total = totals[places.of(row.cgroup, row.process).uid]
        total.seen += 1
        total.run_ns += row.run_ns
        total.delay_ns += row.delay_ns
        total.runs += max(0, row.runs)
    for cgroup, rest in rows.rest.items():
        total = totals[places.of(cgroup, "").uid]
        total.seen += rest.threads
        total.run_ns += rest.run_ns
        total.delay_ns += rest.delay_ns
        total.runs += rest.runs
    return totals


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
            [usage[path] for path in places.pods[assignment.pod.uid] if path in usage],
            window_s,
        )
        for assignment in places.plan.assignments
    )


def _pod_sample(
    assignment: Assignment,
    threads: ThreadTotals,
    usage: Sequence[CgroupUsage],
    window_s: float,
) -> PodSample:
    pod = assignment.pod
    rate = 1 / window_s if window_s > 0 else 0.0
    seen_s = threads.run_ns / NS_PER_S
    counted = [found.cpu_us for found in usage if found.cpu_us is not None]
    # The cgroup also counts what ran in threads that came and went between two looks.
    used_s = sum(counted) / US_PER_S if counted else seen_s
    periods = sum(found.throttled.periods for found in usage)
    throttled = sum(found.throttled.throttled_periods for found in usage)
    limits = next((found.limits for found in usage if found.limits is not NO_LIMITS), NO_LIMITS)
    return PodSample(
        pod.namespace,
        pod.name,
        pod.uid,
        assignment.tier,
        # A workload known by its process has no cgroup in which its threads are counted.
        max(threads.living, threads.seen),
        used_s * rate,
        throttled / periods if periods else 0.0,
        sum(found.memory_bytes for found in usage),
        assignment.profile.profile.id if assignment.profile else "",
        next((found.pressure for found in usage if found.pressure), {}),
        max(0.0, used_s - seen_s) * rate if counted else 0.0,
        threads.delay_ns / NS_PER_S * rate,
        threads.runs,
        sum(found.throttled.throttled_us for found in usage) / US_PER_S,
        limits.quota_cores,
        limits.weight,
        limits.cpuset,
        _unthrottled(usage, window_s),
    )


def _unthrottled(usage: Iterable[CgroupUsage], window_s: float) -> float | None:
    """Return the share of the window in which somebody waited though nothing throttled him.

    Of several cgroups the one that waited longest counts: their waits may overlap.
    """
    waited_us = [
        max(0.0, found.stalled_us - found.throttled.explained_us)
        for found in usage
        if found.stalled_us is not None
    ]
    if not waited_us or window_s <= 0:
        return None
    return min(1.0, max(waited_us) / US_PER_S / window_s)
