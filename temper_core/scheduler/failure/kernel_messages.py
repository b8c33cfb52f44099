"""Messages about schedulers in the kernel's log, for commands that run without an agent."""

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from temper_core.scheduler.failure.diagnosis import Diagnosis, End, EndKind, diagnose

ABOUT_SCHEDULERS = re.compile(r"sched_ext|sysrq: Disable|soft lockup - CPU#|RT throttling")
MOST_RECORDS = 100_000
RECORD_BYTES = 8_192
TEXT_BYTES = 300


@frozen
class KernelMessage:
    """One line of the kernel's log. ``at_s`` is in seconds since boot."""

    at_s: float
    text: str

    def __str__(self) -> str:
        return f"[{self.at_s:.6f}] {self.text}"


def last_messages(
    kmsg: Path = Path("/dev/kmsg"), most: int = 5, about: re.Pattern[str] = ABOUT_SCHEDULERS
) -> tuple[KernelMessage, ...]:
    """Return the newest *most* lines that match *about*, none if the log cannot be read."""
    messages: deque[KernelMessage] = deque(maxlen=most)
    for record in _records(kmsg):
        # "priority,number,microseconds,flags;text", then lines of names and values
        header, _, text = record.partition("\n")[0].partition(";")
        fields = header.split(",")
        if about.search(text) and len(fields) > 2 and fields[2].isdigit():  # noqa: PLR2004
            messages.append(KernelMessage(int(fields[2]) / 1e6, text[:TEXT_BYTES]))
    return tuple(messages)


def last_ejection(messages: tuple[KernelMessage, ...], proc: Path) -> Diagnosis | None:
    """Return why the kernel ejected the last scheduler in *messages*.

    None if it still runs, ended normally, or none was attached.
    """
    lines = [message.text for message in messages]
    diagnosis = diagnose(End(0, kernel_log=lines, proc=proc))
    return None if diagnosis.kind is EndKind.TERMINATED else diagnosis


def _records(path: Path) -> Iterator[str]:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            yield from _read(descriptor)
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> Iterator[str]:
    for _ in range(MOST_RECORDS):
        try:
            record = os.read(descriptor, RECORD_BYTES)
        except BrokenPipeError:
            continue  # the kernel overwrote this record, and the read position has moved on
        if not record:
            return
        yield record.decode(errors="replace")
