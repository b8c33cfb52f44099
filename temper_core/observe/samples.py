"""The rows of one window turned into the samples of threads that a snapshot holds."""

import time
from collections.abc import Iterable, Mapping

from temper_core.observe.bindings import Affinities, policy_name
from temper_core.observe.places import Places
from temper_core.observe.process_text import NS_PER_TICK, TICKS_PER_S
from temper_core.observe.thread_rows import ThreadRow
from temper_core.records.snapshots import ThreadSample
from temper_core.records.steering import ThreadTruth

NS_PER_S = 1_000_000_000

Truth = Mapping[int, ThreadTruth]
UNKNOWN = ThreadTruth(tid=0, tgid=0, start_ns=0, comm="", cgroup_id=0, run_ns=0)


class Sampler:
    """Makes samples of one window's rows; what they have in common is worked out once.

    Without the engine's own record of it in *truth*, a thread's ``layer`` is inferred: while the
    plan is enforced it is the expected one. What user space decided is expected as decided.
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
        """Return who ran in the window; nothing for a window of no length."""
        if not self._per_ns:
            return ()
        self._affinities.begin()
        return tuple(map(self._sample, rows))

    def _sample(self, row: ThreadRow) -> ThreadSample:
        place, expected = self._places.seat_of(row)
        told = self._truth_of(row) if self._truth else UNKNOWN
        if told.is_decided:
            expected = told.expected
        layer = told.layer or (expected if self._is_enforcing else "")
        used, delayed = row.run_ns * self._per_ns, row.delay_ns * self._per_ns
        # By position, in the order of the fields: by name it takes half as long again, and this
        # runs for hundreds of threads in every look.
        return ThreadSample(
            row.tid,
            row.tgid,
            row.comm,
            row.process,
            row.start_ticks,
            row.cpu,
            # The kernel books run time at its own ticks, so a window may get a little of the one
            # before; a wait is booked whole when it ends.
            min(used, 1.0),
            min(delayed, 1.0),
            row.cgroup,
            place.namespace,
            place.pod,
            place.container,
            place.tier,
            layer,
            expected,
            row.is_kthread,
            row.uid,
            max(0.0, self._uptime_s - row.start_ticks / TICKS_PER_S),
            told.hinted,
            bool(told.layer),
            row.runs,
            row.voluntary,
            row.involuntary,
            row.migrations,
            policy_name(row.policy),
            row.nice,
            row.rt_priority,
            self._affinities.of(row, self._cpus),
            row.waiting_ns / NS_PER_S,
        )

    def _truth_of(self, row: ThreadRow) -> ThreadTruth:
        """Return what the kernel side says of it, unless that is of an earlier one of that tid."""
        told = self._truth.get(row.tid)
        if told is None or abs(told.start_ns // NS_PER_TICK - row.start_ticks) > 1:
            return UNKNOWN
        return told
