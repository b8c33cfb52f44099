"""Converts the rows of one window to the thread samples of a snapshot."""

import time
from collections.abc import Iterable, Mapping

from temper_core.observe.bindings import POLICIES, Affinities
from temper_core.observe.places import Places
from temper_core.observe.process_text import NS_PER_TICK, TICKS_PER_S
from temper_core.observe.thread_rows import ThreadRow
from temper_core.records.snapshots import ThreadSample
from temper_core.records.steering import ThreadTruth

NS_PER_S = 1_000_000_000
S_PER_TICK = 1 / TICKS_PER_S

Truth = Mapping[int, ThreadTruth]
UNKNOWN = ThreadTruth(tid=0, tgid=0, start_ns=0, comm="", cgroup_id=0, run_ns=0)


class Sampler:
    """Makes samples of one window's rows. Their common values are computed once.

    Without the engine's own record in *truth*, a thread's ``layer`` is inferred: while the plan is
    enforced, it is the expected one. The expected layer of a steered thread is the steered one.
    """

    def __init__(
        self,
        places: Places,
        window_s: float,
        *,
        cpus: int,
        is_enforcing: bool,
        affinities: Affinities,
        truth: Truth | None = None,
    ) -> None:
        self._places = places
        self._cpus = cpus
        self._is_enforcing = is_enforcing
        self._affinities = affinities
        self._truth = truth or {}
        self._per_ns = 1 / (window_s * NS_PER_S) if window_s > 0 else 0.0
        self._uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)

    def samples(self, rows: Iterable[ThreadRow]) -> tuple[ThreadSample, ...]:
        """Return the threads that ran in the window, none for a window without length."""
        if not self._per_ns:
            return ()
        self._affinities.begin()
        return tuple(map(self._sample, rows))

    def _sample(self, row: ThreadRow) -> ThreadSample:
        # This runs for hundreds of threads in every look. The row is unpacked and the sample made
        # by position, in the order of the fields, since names take half as long again.
        tid, tgid, comm, process, start, cpu, run_ns, delay_ns, is_kthread, uid, cgroup, *more = row
        runs, voluntary, involuntary, migrations, policy, nice, priority, allowed, waiting_ns = more
        place, expected = self._places.seat_of(row)
        record = self._truth_of(row) if self._truth else UNKNOWN
        if record.is_decided:
            expected = record.expected
        # The kernel accounts run time at its own ticks, so a window may include a little of the
        # previous one. It accounts a wait as a whole when the wait ends.
        used, delayed = run_ns * self._per_ns, delay_ns * self._per_ns
        age_s = self._uptime_s - start * S_PER_TICK
        return ThreadSample(
            tid,
            tgid,
            comm,
            process,
            start,
            cpu,
            1.0 if used > 1 else used,
            1.0 if delayed > 1 else delayed,
            cgroup,
            place.namespace,
            place.pod,
            place.container,
            place.tier,
            record.layer or (expected if self._is_enforcing else ""),
            expected,
            is_kthread,
            uid,
            0.0 if age_s < 0 else age_s,
            record.hinted,
            record.layer != "",
            runs,
            voluntary,
            involuntary,
            migrations,
            POLICIES.get(policy, ""),
            nice,
            priority,
            self._affinities.of(row, self._cpus) if 0 < allowed < self._cpus else (),
            waiting_ns / NS_PER_S,
        )

    def _truth_of(self, row: ThreadRow) -> ThreadTruth:
        """Return the kernel side's record, unless it is of an earlier thread with that tid."""
        record = self._truth.get(row.tid)
        if record is None or abs(record.start_ns // NS_PER_TICK - row.start_ticks) > 1:
            return UNKNOWN
        return record
