"""What the agent itself costs: CPU by part, memory, descriptors."""

import os
import resource
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define

from temper_core.observe.descriptors import DescriptorBudget, KeptFile, read_once
from temper_core.records.snapshots import Overhead

PER_LOOK = ("observe", "lint")
"""Parts whose cost falls with the number of looks; the others do not wait for the observer."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
OTHER = "other"


@define(eq=False)
class _Part:
    """CPU time of one part: exact in this window, and where it fell in all the time so far.

    The kernel tells user space and kernel apart by its timer tick (``task_cputime_adjusted``),
    far too coarse for one window of a few milliseconds; so the split is the long-run one.
    """

    spent_s: float = 0.0
    user_s: float = 0.0
    kernel_s: float = 0.0

    @property
    def kernel_share(self) -> float:
        whole_s = self.user_s + self.kernel_s
        return min(1.0, max(0.0, self.kernel_s / whole_s)) if whole_s > 0 else 0.5


class OwnCost:
    """Adds up the CPU time of the agent by part; any thread may charge a part.

    What no part was charged with (other threads, the interpreter) is ``other``. Every part is
    split into user space and kernel: ``observe_user``, ``observe_kernel``. All keys add up to
    the whole process. A part inside a part is charged to both, so do not nest them.

    ``series`` is for the server to set: how many its last scrape had. ``look_s`` is what the
    looks of the window before the last ``take`` cost, linter included.
    """

    def __init__(
        self, proc_root: Path | str = Path("/proc"), budget: DescriptorBudget | None = None
    ) -> None:
        self._proc_root = str(proc_root)
        self._lock = threading.Lock()
        self._parts: defaultdict[str, _Part] = defaultdict(_Part)
        self._whole_s = time.process_time()
        self._from = time.monotonic()
        self._own_memory = KeptFile(f"{self._proc_root}/self/statm", budget or DescriptorBudget())
        self._bpf_ns = 0
        self.series = 0
        self.look_s = 0.0

    def note_bpf(self, kernel_ns: int) -> None:
        """Remember how much of the charged time ran inside BPF programs."""
        self._bpf_ns += kernel_ns

    def close(self) -> None:
        """Let go of the one file that is kept."""
        self._own_memory.close()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Charge the calling thread's CPU time inside the block to *name*."""
        began_s, began = time.thread_time(), resource.getrusage(resource.RUSAGE_THREAD)
        try:
            yield
        finally:
            spent_s, now = time.thread_time() - began_s, resource.getrusage(resource.RUSAGE_THREAD)
            with self._lock:
                part = self._parts[name]
                part.spent_s += spent_s
                part.user_s += now.ru_utime - began.ru_utime
                part.kernel_s += now.ru_stime - began.ru_stime

    def take(self, *, engine_pid: int | None = None, period_s: float = 0.0) -> Overhead:
        """Return the cost since the last call, and begin a new window."""
        now, whole_s = time.monotonic(), time.process_time()
        window_s, self._from = now - self._from, now
        spent_s, self._whole_s = whole_s - self._whole_s, whole_s
        with self._lock:
            self._settle_other(spent_s)
            self.look_s = sum(self._parts[name].spent_s for name in PER_LOOK)
            ratios = {key: s / window_s for key, s in self._split().items()} if window_s else {}
        bpf_ns, self._bpf_ns = self._bpf_ns, 0
        return Overhead(
            cpu_ratio=ratios,
            memory_bytes=_resident_bytes(self._own_memory.read),
            engine_memory_bytes=self._engine_bytes(engine_pid) if engine_pid else 0,
            period_s=period_s,
            descriptors=self._open_descriptors(),
            bpf_cpu_ratio=bpf_ns / 1e9 / window_s if window_s else 0.0,
            series=self.series,
        )

    def _settle_other(self, spent_s: float) -> None:
        charged = [part for name, part in self._parts.items() if name != OTHER]
        whole = resource.getrusage(resource.RUSAGE_SELF)
        other = self._parts[OTHER]
        other.spent_s = max(0.0, spent_s - sum(part.spent_s for part in charged))
        other.user_s = max(0.0, whole.ru_utime - sum(part.user_s for part in charged))
        other.kernel_s = max(0.0, whole.ru_stime - sum(part.kernel_s for part in charged))

    def _split(self) -> dict[str, float]:
        """Return this window's seconds by part and side, and begin a new window."""
        found: dict[str, float] = {}
        for name, part in sorted(self._parts.items()):
            kernel_s = part.spent_s * part.kernel_share
            found[f"{name}_kernel"], found[f"{name}_user"] = kernel_s, part.spent_s - kernel_s
            part.spent_s = 0.0
        return found

    def _engine_bytes(self, pid: int) -> int:
        return _resident_bytes(lambda: read_once(f"{self._proc_root}/{pid}/statm"))

    def _open_descriptors(self) -> int:
        folder = Path(self._proc_root, "self", "fd")
        try:
            # Since Linux 6.2 the size of this directory is the number; listing costs far more.
            return folder.stat().st_size or len(list(folder.iterdir()))
        except OSError:
            return 0


def _resident_bytes(read: Callable[[], bytes]) -> int:
    try:
        return int(read().split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
