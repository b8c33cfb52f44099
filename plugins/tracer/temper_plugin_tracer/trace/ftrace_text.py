"""Traces as text: ``trace`` of tracefs, ``trace-cmd report``, ``perf script``.

The lines differ in their heads only. The fields of an event are ``name=value``, but ``trace-cmd``
prints switches and wakings as ``comm:pid [prio]``.
"""

import math
import re
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temper_core import InputError, UnpackedFile, open_file
from temper_plugin_tracer.trace.events import PREEMPTED, SCHED_EVENT, Kind
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread

__all__ = ["FtraceText", "looks_like_ftrace_text"]

BLOCK = 1 << 15
LONGEST_LINE = 4_096
LARGEST_RATIO = 64
"""Unpacked bytes for each byte of a packed file. The text of a trace has about 15."""
LEAST_UNPACKED_BYTES = 64 << 20
"""So many are read of any packed file."""
GZIP_MAGIC = b"\x1f\x8b"
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "P": 64, "I": 128}
"""Letters of the trace point sched_switch (include/trace/events/sched.h)."""
INTERRUPT_FLAGS = frozenset("hHzZ")
"""Letters of the head's third flag for an interrupt (Documentation/trace/ftrace.rst)."""

_HEAD = re.compile(
    r"^.+?[\s-](?P<pid>\d+)\s+(?:\(\s*[\d-]+\)\s+)?\[(?P<cpu>\d+)\]\s+"
    r"(?:(?P<flags>[^\s:]{4,6})\s+)?(?P<s>\d+)\.(?P<part>\d{6}|\d{9}):\s+"
    r"(?:[a-z]+:)?(?P<event>\w+):\s*(?P<rest>.*)$"
)
"""One separator before the id: more ways to share out a run of spaces would take cubic time."""
_SWITCH = re.compile(
    r"prev_comm=(?P<from>.*) prev_pid=(?P<prev>\d+) prev_prio=-?\d+ prev_state=(?P<state>\S+) "
    r"==> next_comm=(?P<to>.*) next_pid=(?P<next>\d+) next_prio=(?P<prio>-?\d+)"
)
_SHORT_SWITCH = re.compile(
    r"(?P<from>.*):(?P<prev>\d+) \[-?\d+\] (?P<state>\S+) ==> "
    r"(?P<to>.*):(?P<next>\d+) \[(?P<prio>-?\d+)\]"
)
_WAKING = re.compile(
    r"comm=(?P<to>.*) pid=(?P<next>\d+) prio=(?P<prio>-?\d+) .*target_cpu=(?P<cpu>\d+)"
)
_SHORT_WAKING = re.compile(r"(?P<to>.*):(?P<next>\d+) \[(?P<prio>-?\d+)\].* CPU:(?P<cpu>\d+)")
_MIGRATION = re.compile(
    r"comm=(?P<to>.*) pid=(?P<next>\d+) prio=(?P<prio>-?\d+) "
    r"orig_cpu=(?P<source>\d+) dest_cpu=(?P<cpu>\d+)"
)
_INTERRUPT = re.compile(r"irq=(?P<next>\d+)")
_SOFTIRQ = re.compile(r"vec=(?P<next>\d+)")
_LOST = re.compile(
    r"CPU:(?P<cpu>\d+) "
    r"\[(?:LOST (?P<lost>\d+) EVENTS|(?P<dropped>\d+) EVENTS DROPPED|EVENTS DROPPED)\]"
)

_HANDLERS = {
    "irq_handler_entry": (Kind.INTERRUPT_BEGINS, _INTERRUPT),
    "irq_handler_exit": (Kind.INTERRUPT_ENDS, _INTERRUPT),
    "softirq_entry": (Kind.SOFTIRQ_BEGINS, _SOFTIRQ),
    "softirq_exit": (Kind.SOFTIRQ_ENDS, _SOFTIRQ),
}
_WAKINGS = frozenset({"sched_waking", "sched_wakeup", "sched_wakeup_new"})


def looks_like_ftrace_text(head: bytes) -> bool:
    """Return whether a file that begins with *head* is a trace as text."""
    text = head.decode("utf-8", "replace")
    if text.startswith("# tracer:"):
        return True
    return "\0" not in text and any(_HEAD.match(line) for line in text.splitlines()[:64])


class FtraceText:
    """A trace as text, which may be compressed by gzip.

    ``threads`` and ``facts`` are complete when all blocks have been read.

    Attributes:
        path: The file.
        machine: None, since the text does not describe the machine.
        cut: Empty, since text has no end that could be missing.

    """

    machine: TracedMachine | None = None
    cut: str = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: dict[int, str] = {}
        self.losses: dict[int, int] = {}
        """Lost events by CPU."""

    @property
    def facts(self) -> CaptureFacts | None:
        """None: text has no facts of its capture."""
        return None

    @property
    def threads(self) -> tuple[TracedThread, ...]:
        """The threads that were read so far, with their last names."""
        return tuple(
            TracedThread(tid=tid, tgid=0, name=name, process="")
            for tid, name in sorted(self._names.items())
        )

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Read the events in blocks, in the order of time.

        Raises:
            InputError: if the file cannot be read, or its events are out of order by more than a
                block, or a value does not fit its field.

        """
        self._names.clear()
        self.losses.clear()
        waiting: list[tuple[int, ...]] = []
        try:
            for event in self._events():
                waiting.append(event)
                if len(waiting) >= 2 * BLOCK:
                    # perf prints the CPUs' events almost in order: half a block is kept back.
                    waiting.sort(key=_moment)
                    yield self._array(waiting[:BLOCK])
                    del waiting[:BLOCK]
            waiting.sort(key=_moment)
            if waiting:
                yield self._array(waiting)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{self.path}: {reason}") from error

    def _events(self) -> Iterator[tuple[int, ...]]:
        with open_file(self.path) as file:
            is_packed = file.read(2) == GZIP_MAGIC
            file.seek(0)
            lines: BufferedIOBase = UnpackedFile(file) if is_packed else file
            most = self.path.stat().st_size * LARGEST_RATIO if is_packed else math.inf
            read = 0
            while line := lines.readline(LONGEST_LINE):
                read += len(line)
                if read > max(most, LEAST_UNPACKED_BYTES):
                    raise InputError(
                        f"{self.path}: is more than {LARGEST_RATIO} times its size when it is "
                        "unpacked, which no trace is"
                    )
                event = self._event(line.decode("utf-8", "replace").rstrip("\n"))
                if event is not None:
                    yield event

    def _array(self, rows: list[tuple[int, ...]]) -> NDArray[Any]:
        try:
            return np.array(rows, SCHED_EVENT)
        except (OverflowError, ValueError) as error:
            raise InputError(f"{self.path}: a number of an event is too large") from error

    def _event(self, line: str) -> tuple[int, ...] | None:
        head = _HEAD.match(line)
        if head is None:
            self._note_loss(line)
            return None
        name, rest = head["event"], head["rest"]
        ns = int(head["s"]) * 1_000_000_000 + int(head["part"].ljust(9, "0"))
        if name == "sched_switch":
            return self._switch(ns, int(head["cpu"]), rest)
        if name in _WAKINGS:
            return self._waking(ns, head, rest)
        if name == "sched_migrate_task":
            return self._migration(ns, int(head["cpu"]), rest)
        if name in _HANDLERS:
            kind, pattern = _HANDLERS[name]
            match = pattern.search(rest)
            cpu = int(head["cpu"])
            return match and (ns, 0, int(match["next"]), 0, cpu, cpu, 0, 0, kind, 0, 0)
        return None

    def _switch(self, ns: int, cpu: int, rest: str) -> tuple[int, ...] | None:
        match = _SWITCH.match(rest) or _SHORT_SWITCH.match(rest)
        if match is None:
            return None
        prev, following = int(match["prev"]), int(match["next"])
        self._name(prev, match["from"])
        self._name(following, match["to"])
        state, prio = _state(match["state"]), int(match["prio"])
        return ns, prev, following, 0, cpu, cpu, state, prio, Kind.SWITCH, 0, 0

    def _waking(self, ns: int, head: re.Match[str], rest: str) -> tuple[int, ...] | None:
        match = _WAKING.match(rest) or _SHORT_WAKING.match(rest)
        if match is None:
            return None
        following, prio = int(match["next"]), int(match["prio"])
        self._name(following, match["to"])
        flags = head["flags"] or ""
        is_interrupt = bool(INTERRUPT_FLAGS.intersection(flags[2:3]))
        cpus = int(head["cpu"]), int(match["cpu"])
        return ns, int(head["pid"]), following, 0, *cpus, 0, prio, Kind.WAKING, is_interrupt, 0

    def _migration(self, ns: int, cpu: int, rest: str) -> tuple[int, ...] | None:
        match = _MIGRATION.match(rest)
        if match is None:
            return None
        following, prio = int(match["next"]), int(match["prio"])
        self._name(following, match["to"])
        source, target = int(match["source"]), int(match["cpu"])
        return ns, source, following, 0, cpu, target, 0, prio, Kind.MIGRATION, 0, 0

    def _name(self, tid: int, name: str) -> None:
        if tid:
            self._names[tid] = name.strip()

    def _note_loss(self, line: str) -> None:
        lost = _LOST.search(line)
        if lost:
            cpu = int(lost["cpu"])
            count = int(lost["lost"] or lost["dropped"] or 1)
            self.losses[cpu] = self.losses.get(cpu, 0) + count


def _moment(event: tuple[int, ...]) -> int:
    return event[0]


def _state(letters: str) -> int:
    """Return ``state`` of a switch: ``R+`` is a preempted thread, ``S|K`` has more than one bit."""
    bits = 0
    for letter in letters.replace("|", ""):
        bits |= PREEMPTED if letter == "+" else STATES.get(letter, 0x40)
    return bits
