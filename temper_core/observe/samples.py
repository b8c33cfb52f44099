"""Rows and counters of one window turned into the samples that a snapshot holds."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from temper_core.observe.cgroup_usage import CgroupUsage
from temper_core.observe.places import Places
from temper_core.observe.process_text import NS_PER_TICK, TICKS_PER_S
from temper_core.observe.thread_rows import ThreadRow, ThreadRows
from temper_core.records.plans import Assignment
from temper_core.records.snapshots import PodSample, ThreadSample
from temper_core.records.steering import ThreadTruth

NS_PER_S = 1_000_000_000
US_PER_S = 1_000_000

Truth = Mapping[int, ThreadTruth]
UNKNOWN = ThreadTruth(tid=0, tgid=0, start_ns=0, comm="", cgroup_id=0, run_ns=0)


def thread_samples(
    rows: Sequence[ThreadRow],
    places: Places,
    window_s: float,
    *,
    is_enforcing: bool,
    truth: Truth | None = None,
) -> tuple[ThreadSample, ...]:
    """Return who ran in the window; nothing for a window of no length.

    Without the engine's own record of it in *truth*, a thread's ``layer`` is inferred: while the
    plan is enforced it is the expected one. What user space decided is expected as decided.
    """
    if window_s <= 0:
        return ()
    truth = truth or {}
    window_ns = window_s * NS_PER_S
    uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    samples = []
    for row in rows:
        place = places.of(row.cgroup, row.process)
        told = _truth_of(row, truth)
        expected = told.expected if told.is_decided else places.layer_of(row)
        inferred = expected if is_enforcing else ""
        samples.append(
            ThreadSample(
                tid=row.tid,
                tgid=row.tgid,
                comm=row.comm,
                process=row.process,
                start_ticks=row.start_ticks,
                cpu=row.cpu,
                # The kernel books run time at its own ticks, so a window may get a little of the
                # one before; a wait is booked whole when it ends.
                cpu_used=min(1.0, row.run_ns / window_ns),
                run_delay_ratio=min(1.0, row.delay_ns / window_ns),
                cgroup=row.cgroup,
                namespace=place.namespace,
                pod=place.pod,
                container=place.container,
                tier=place.tier,
                layer=told.layer or inferred,
                expected_layer=expected,
                is_kthread=row.is_kthread,
                uid=row.uid,
                age_s=max(0.0, uptime_s - row.start_ticks / TICKS_PER_S),
                hinted_layer=told.hinted,
                layer_is_known=bool(told.layer),
            )
        )
    return tuple(samples)


def _truth_of(row: ThreadRow, truth: Truth) -> ThreadTruth:
    """Return what the kernel side says of a thread, unless it means an earlier one of that tid."""
    told = truth.get(row.tid)
    if told is None or abs(told.start_ns // NS_PER_TICK - row.start_ticks) > 1:
        return UNKNOWN
    return told


def pod_samples(
    places: Places,
    rows: ThreadRows,
    usage: Mapping[str, CgroupUsage],
    window_s: float,
) -> tuple[PodSample, ...]:
    """Return one sample per pod of the plan, from its cgroups and its threads."""
    if places.plan is None:
        return ()
    counts, run_ns = _sums(places, rows)
    return tuple(
        _pod_sample(
            assignment,
            threads=counts[assignment.pod.uid],
            used_s=run_ns[assignment.pod.uid] / NS_PER_S,
            usage=[usage[path] for path in places.pods[assignment.pod.uid] if path in usage],
            window_s=window_s,
        )
        for assignment in places.plan.assignments
    )


def _sums(places: Places, rows: ThreadRows) -> tuple[Counter[str], Counter[str]]:
    counts: Counter[str] = Counter()
    run_ns: Counter[str] = Counter()
    for cgroup, threads in rows.threads_by_cgroup.items():
        counts[places.of(cgroup, "").uid] += threads
    seen: defaultdict[str, int] = defaultdict(int)
    for row in rows.rows:
        place = places.of(row.cgroup, row.process)
        run_ns[place.uid] += row.run_ns
        seen[place.uid] += 1
    for uid, threads in seen.items():  # a workload known by its process has no cgroup to count
        counts[uid] = max(counts[uid], threads)
    return counts, run_ns


def _pod_sample(
    assignment: Assignment,
    *,
    threads: int,
    used_s: float,
    usage: Sequence[CgroupUsage],
    window_s: float,
) -> PodSample:
    pod = assignment.pod
    counted = [found.cpu_us for found in usage if found.cpu_us is not None]
    if counted:  # also holds what ran in threads that came and went between two looks
        used_s = sum(counted) / US_PER_S
    periods = sum(found.periods for found in usage)
    throttled = sum(found.throttled_periods for found in usage)
    return PodSample(
        namespace=pod.namespace,
        pod=pod.name,
        uid=pod.uid,
        tier=assignment.tier,
        threads=threads,
        cpu_used=used_s / window_s if window_s > 0 else 0.0,
        throttled_ratio=throttled / periods if periods else 0.0,
        memory_bytes=sum(found.memory_bytes for found in usage),
        profile=assignment.profile.profile.id if assignment.profile else "",
        pressure=next((found.pressure for found in usage if found.pressure), {}),
    )
