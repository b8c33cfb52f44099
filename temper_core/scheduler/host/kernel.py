"""The kernel's sched_ext interface: /sys/kernel/sched_ext and the kernel's log.

Files and state words are those of Linux 6.12 to 6.18. ``root/`` exists only while a scheduler is
loaded.
"""

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from attrs import frozen

from temper_core.kernel_text import kernel_lines
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
    """The state word. An unknown word counts as TRANSITIONAL, a missing file as ABSENT."""

    DISABLED = "disabled"
    ENABLING = "enabling"
    ENABLED = "enabled"
    DISABLING = "disabling"
    TRANSITIONAL = "transitional"
    ABSENT = "absent"


@frozen
class KernelState:
    """One reading of sched_ext. For a missing file ``ops`` is empty and a number is None.

    ``is_known`` is false if a file existed but could not be read, for example without a free
    descriptor. Nothing may be concluded from such a reading.
    """

    word: KernelStateWord
    ops: str = ""
    switch_all: int | None = None
    enable_seq: int | None = None
    nr_rejected: int | None = None
    is_known: bool = True

    @property
    def is_free(self) -> bool:
        """Whether the stock scheduler runs everything. False if that is not known."""
        return self.word in (KernelStateWord.DISABLED, KernelStateWord.ABSENT)

    @property
    def is_layered(self) -> bool:
        """Whether a scx_layered engine is attached, this agent's or another's."""
        return self.word is KernelStateWord.ENABLED and self.ops.startswith(OUR_OPS)

    @property
    def is_without_us(self) -> bool:
        """Whether no scx_layered engine is attached. One without a name may be detaching."""
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
        """Read the state. The files are read one by one, so a change may fall between two reads."""
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
            return f"an unknown scheduler ({self.root} cannot be read)"
        return state.ops or f"a scheduler that is {state.word}"

    def events(self) -> Mapping[str, int]:
        """Return the counters of root/events (Linux 6.15 and later), by their kernel names."""
        counters: dict[str, int] = {}
        for line in kernel_lines(read_line(self.root / "root/events") or ""):
            name, _, value = line.partition(" ")
            with suppress(ValueError):
                counters[name.rstrip(":")] = int(value)
        return counters

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
        """Return the content of a file, None if it is missing. Raise OSError if unreadable."""
        try:
            with (self.root / name).open("rb") as file:
                return file.read(FILE_BYTES).decode(errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None


class KernelLog:
    """The lines about schedulers and the OOM killer that the kernel logs from now on.

    Reads /dev/kmsg without blocking and keeps the newest hundred lines. The kernel returns its
    records oldest first, and most of them cannot be skipped. So ``drain`` reads them while an
    engine runs, and ``tail`` has few left to read when one has ended. If the device may not be
    read (no CAP_SYSLOG, no device in the container) there are no lines and ``is_readable`` is
    false.
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
        """Read new records for tenths of a second at most. Return the newest lines."""
        self._keep(self._tail_reads)
        return tuple(self._lines)

    def drain(self, now: float) -> None:
        """Read new records, for milliseconds and at most every ten seconds of *now*."""
        if now >= self._next_drain:
            self._next_drain = now + DRAIN_S
            self._keep(self._drain_reads)

    def forget(self) -> None:
        """Drop all lines up to now, so that a later tail is about one engine only."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.lseek(self._descriptor, 0, os.SEEK_END)
        self._lines.clear()

    def close(self) -> None:
        """Close the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _keep(self, reads: int) -> None:
        for record in self._records(reads):
            for line in kernel_lines(record):
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
                continue  # the kernel overwrote this record, and the read position has moved on
            except OSError:
                return
            if not record:
                return
            yield record.decode(errors="replace")
