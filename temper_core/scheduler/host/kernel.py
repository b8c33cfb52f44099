"""What the kernel says about sched_ext: /sys/kernel/sched_ext, and its log.

Files and words as in Linux 6.12 to 6.18. ``root/`` exists only while a scheduler is loaded.
"""

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from attrs import frozen

from temper_core.scheduler.host.roots import number_in, read_line

OUR_OPS = "layered"
LOG_LINES = 100
LOG_LINE_BYTES = 1_000
DRAIN_READS = 4_000
TAIL_READS = 40_000
DRAIN_S = 10.0
FILE_BYTES = 256
RECORD_BYTES = 8_192
RELEVANT = re.compile(
    r"sched_ext|scx_|sysrq: Disable|Killed process|Out of memory|oom-kill|"
    r"soft lockup - CPU#|RT throttling"
)


class KernelStateWord(StrEnum):
    """The state word. A word of a newer kernel counts as TRANSITIONAL, no file as ABSENT."""

    DISABLED = "disabled"
    ENABLING = "enabling"
    ENABLED = "enabled"
    DISABLING = "disabling"
    TRANSITIONAL = "transitional"
    ABSENT = "absent"


@frozen
class KernelState:
    """One look at sched_ext. ``ops`` is empty and numbers are None where there is nothing.

    ``is_known`` is false where a file was there and could not be read, as without a descriptor to
    spare: nothing may be concluded from such a look.
    """

    word: KernelStateWord
    ops: str = ""
    switch_all: int | None = None
    enable_seq: int | None = None
    nr_rejected: int | None = None
    is_known: bool = True

    @property
    def is_free(self) -> bool:
        """Whether the stock scheduler runs everything. False where that is not known."""
        return self.word in (KernelStateWord.DISABLED, KernelStateWord.ABSENT)

    @property
    def is_layered(self) -> bool:
        """Whether an engine of our kind is attached. Whose it is, only its process tells."""
        return self.word is KernelStateWord.ENABLED and self.ops.startswith(OUR_OPS)

    @property
    def is_without_us(self) -> bool:
        """Whether no engine of our kind can be attached. One without a name may just be going."""
        is_foreign = self.word is KernelStateWord.ENABLED and self.ops != "" and not self.is_layered
        return self.is_free or is_foreign


class SchedExt:
    """The kernel's sched_ext interface below *root*."""

    def __init__(self, root: Path = Path("/sys/kernel/sched_ext")) -> None:
        self.root = root

    @property
    def is_supported(self) -> bool:
        """Whether the kernel was built with sched_ext."""
        return self.root.is_dir()

    def read(self) -> KernelState:
        """Look once. The files are read one after another, so a switch may fall between."""
        try:
            return KernelState(
                word=self._word(),
                ops=self._text("root/ops") or "",
                switch_all=number_in(self._text("switch_all")),
                enable_seq=number_in(self._text("enable_seq")),
                nr_rejected=number_in(self._text("nr_rejected")),
            )
        except OSError:
            return KernelState(KernelStateWord.TRANSITIONAL, is_known=False)

    def foreign(self, ours: bool) -> str | None:
        """Name the scheduler that is attached though no engine of ours runs (*ours* is false)."""
        state = self.read()
        if ours or state.is_free:
            return None
        if not state.is_known:
            return f"whatever {self.root} cannot be read about"
        return state.ops or f"a scheduler that is {state.word}"

    def events(self) -> Mapping[str, int]:
        """Return the counters of root/events (Linux 6.15 and later), by their kernel names."""
        found: dict[str, int] = {}
        for line in (read_line(self.root / "root/events") or "").splitlines():
            name, _, value = line.partition(" ")
            with suppress(ValueError):
                found[name.rstrip(":")] = int(value)
        return found

    def _word(self) -> KernelStateWord:
        text = self._text("state")
        if text is None:
            return KernelStateWord.ABSENT
        try:
            word = KernelStateWord(text)
        except ValueError:
            return KernelStateWord.TRANSITIONAL
        return KernelStateWord.TRANSITIONAL if word is KernelStateWord.ABSENT else word

    def _text(self, name: str) -> str | None:
        """Return what is in a file; None where there is none, OSError where it cannot be read."""
        try:
            with (self.root / name).open("rb") as file:
                return file.read(FILE_BYTES).decode(errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None


class KernelLog:
    """The lines about schedulers and the OOM killer that the kernel logs from now on.

    The kernel hands its records out oldest first and there is no way to skip most of them, so
    ``drain`` keeps up with it while an engine runs, and ``tail`` has little left to read when one
    has ended.
    Reads /dev/kmsg without blocking and keeps the newest hundred lines. Where it may not be read
    (no CAP_SYSLOG, no device in the container) there is nothing to tell, and ``is_readable``
    says so.
    """

    def __init__(
        self,
        path: Path = Path("/dev/kmsg"),
        *,
        drain_reads: int = DRAIN_READS,
        tail_reads: int = TAIL_READS,
    ) -> None:
        self._drain_reads = drain_reads
        self._tail_reads = tail_reads
        self._next_drain = float("-inf")
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._descriptor: int | None = None
        with suppress(OSError):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)

    @property
    def is_readable(self) -> bool:
        """Whether the kernel's log could be opened."""
        return self._descriptor is not None

    def tail(self) -> tuple[str, ...]:
        """Read what is new, some tenths of a second's worth at most. Return the newest lines."""
        self._keep(self._tail_reads)
        return tuple(self._lines)

    def drain(self, now: float) -> None:
        """Keep up with what is logged: milliseconds, and every ten seconds of *now* at most."""
        if now >= self._next_drain:
            self._next_drain = now + DRAIN_S
            self._keep(self._drain_reads)

    def forget(self) -> None:
        """Drop what was logged up to now, so that a later tail is about one engine only."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.lseek(self._descriptor, 0, os.SEEK_END)
        self._lines.clear()

    def close(self) -> None:
        """Let go of the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _keep(self, reads: int) -> None:
        for record in self._records(reads):
            for line in record.splitlines():
                text = line.partition(";")[2]
                if not line.startswith(" ") and RELEVANT.search(text):
                    self._lines.append(text[:LOG_LINE_BYTES])

    def _records(self, reads: int) -> Iterator[str]:
        for _ in range(reads):
            if self._descriptor is None:
                return
            try:
                record = os.read(self._descriptor, RECORD_BYTES)
            except BrokenPipeError:
                continue  # the kernel overwrote the next record; the one after it follows
            except OSError:
                return
            if not record:
                return
            yield record.decode(errors="replace")
