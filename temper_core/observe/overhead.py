"""The cost of the agent itself: CPU by part, memory, descriptors."""

import resource
import threading
import time
from collections import defaultdict
from pathlib import Path

from attrs import define

from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.own_size import SizeReader
from temper_core.records.snapshots import Overhead

NS_PER_S = 1_000_000_000
PER_LOOK = ("observe", "lint", "publish")
"""Parts whose cost falls with the number of looks. Other parts run independently of it."""
SPLIT_EVERY = 4
"""Runs of a part per split into user and kernel time. The split doubles the cost of measuring."""
OTHER = "other"


@define(eq=False)
class _Part:
    """CPU time of one part: the exact time of this window, and its split over all time so far.

    The kernel splits user and kernel time by its timer tick (``task_cputime_adjusted``). That is
    far too coarse for one window of a few milliseconds, so the long-run split is used.
    """

    spent_s: float = 0.0
    user_s: float = 0.0
    kernel_s: float = 0.0
    times: int = 0

    @property
    def kernel_share(self) -> float:
        whole_s = self.user_s + self.kernel_s
        return min(1.0, max(0.0, self.kernel_s / whole_s)) if whole_s > 0 else 0.5


class _Open(threading.local):
    """The innermost open charge of the current thread."""

    charge: "_Charge | None" = None


@define(eq=False)
class _Charge:
    """One run of a part, on one thread. The cost of an inner part is excluded."""

    _part: _Part
    _lock: threading.Lock
    _open: _Open
    _outer: "_Charge | None" = None
    _thread: int = 0
    _began_s: float = 0.0
    _began: resource.struct_rusage | None = None
    _inner_s: float = 0.0
    _inner_user_s: float = 0.0
    _inner_kernel_s: float = 0.0

    def __enter__(self) -> None:
        self._outer, self._open.charge = self._open.charge, self
        self._thread = threading.get_ident()
        self._part.times += 1  # a lost count, by a race of two threads, does no harm
        if self._part.times % SPLIT_EVERY == 1:
            self._began = resource.getrusage(resource.RUSAGE_THREAD)
        self._began_s = time.thread_time()

    def __exit__(self, *_: object) -> None:
        if self._thread != threading.get_ident():
            return  # the CPU clocks of two threads are unrelated
        spent_s, began = time.thread_time() - self._began_s, self._began
        outer = self._open.charge = self._outer
        if outer is not None:
            outer._inner_s += spent_s  # noqa: SLF001 - of the same class
        with self._lock:
            self._part.spent_s += spent_s - self._inner_s
            self._part.user_s -= self._inner_user_s
            self._part.kernel_s -= self._inner_kernel_s
            if began is not None:
                self._split(began, outer)

    def _split(self, began: resource.struct_rusage, outer: "_Charge | None") -> None:
        now = resource.getrusage(resource.RUSAGE_THREAD)
        user_s = (now.ru_utime - began.ru_utime) * SPLIT_EVERY
        kernel_s = (now.ru_stime - began.ru_stime) * SPLIT_EVERY
        self._part.user_s += user_s
        self._part.kernel_s += kernel_s
        if outer is not None:
            outer._inner_user_s += user_s  # noqa: SLF001 - of the same class
            outer._inner_kernel_s += kernel_s  # noqa: SLF001 - of the same class


class OwnCost:
    """Adds up the CPU time of the agent by part. Any thread may charge a part.

    Time that no part was charged with (other threads, the interpreter) is ``other``. Every part is
    split into user space and kernel: ``observe_user``, ``observe_kernel``. All keys add up to the
    whole process. A part inside a part is charged to the inner one alone.

    The server sets ``series`` to the number of series of its last scrape. ``look_s`` is the cost of
    the looks of the window before the last ``take``, linter included.
    """

    def __init__(
        self, proc_root: Path | str = Path("/proc"), budget: DescriptorBudget | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._open = _Open()
        self._parts: defaultdict[str, _Part] = defaultdict(_Part)
        self._whole_s = time.process_time()
        self._from = time.monotonic()
        self._size = SizeReader(proc_root, budget or DescriptorBudget())
        self._bpf_ns = 0
        self.series = 0
        self.look_s = 0.0

    def part(self, name: str) -> _Charge:
        """Charge the calling thread's CPU time inside a ``with`` block to *name*."""
        with self._lock:  # no part may be added while another thread iterates over them
            part = self._parts[name]
        return _Charge(part, self._lock, self._open)

    def note_bpf(self, kernel_ns: int) -> None:
        """Add *kernel_ns* to the part of the charged time that ran inside BPF programs."""
        self._bpf_ns += kernel_ns

    def close(self) -> None:
        """Close the kept files."""
        self._size.close()

    def take(self, *, engine_pid: int | None = None, period_s: float = 0.0) -> Overhead:
        """Return the cost since the last call, and begin a new window."""
        now, whole_s = time.monotonic(), time.process_time()
        window_s, self._from = now - self._from, now
        spent_s, self._whole_s = whole_s - self._whole_s, whole_s
        rate = 1 / window_s if window_s else 0.0
        with self._lock:
            self._settle_other(spent_s)
            self.look_s = sum(self._parts[name].spent_s for name in PER_LOOK)
            ratios = self._split(rate)
        bpf_ns, self._bpf_ns = self._bpf_ns, 0
        size = self._size.read(now, engine_pid)
        return Overhead(
            ratios,
            size.memory_bytes,
            size.engine_memory_bytes,
            period_s,
            descriptors=size.descriptors,
            bpf_cpu_ratio=bpf_ns / NS_PER_S * rate,
            series=self.series,
        )

    def _settle_other(self, spent_s: float) -> None:
        charged = [part for name, part in self._parts.items() if name != OTHER]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        other = self._parts[OTHER]
        other.spent_s = max(0.0, spent_s - sum(part.spent_s for part in charged))
        other.user_s = max(0.0, usage.ru_utime - sum(part.user_s for part in charged))
        other.kernel_s = max(0.0, usage.ru_stime - sum(part.kernel_s for part in charged))

    def _split(self, rate: float) -> dict[str, float]:
        """Return this window's cost by part and side, and begin a new window."""
        ratios: dict[str, float] = {}
        for name in sorted(self._parts):
            part = self._parts[name]
            spent, part.spent_s = part.spent_s * rate, 0.0
            kernel = spent * part.kernel_share
            ratios[f"{name}_kernel"], ratios[f"{name}_user"] = kernel, spent - kernel
        return ratios
