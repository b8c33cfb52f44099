"""Records until a bound is reached: drains a recorder into the raw file."""

import errno
import os
import time
from collections.abc import Callable
from typing import Protocol

from attrs import evolve, frozen

from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.drained import Drained, Losses
from temper_plugin_tracer.capture.raw_file import RawFile

NS_PER_S = 1_000_000_000
BYTES_OF_EVENT = 9
"""Size of an event in the finished file, at most. The encoder keeps the bound itself."""
MOST_NAMES = 1 << 20
"""Names that are kept, 56 bytes each. A thread can rename itself a million times a second."""
LOOK_EVERY_S = 0.5
"""How often a request to end and the free space are looked for, if no drain is due. A look takes
some 0.1 ms of CPU time."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Recorder(Protocol):
    """A way to record: a BPF object, or an instance of tracefs."""

    name: str

    def begin(self) -> None:
        """Begin to record."""
        ...

    def end(self) -> None:
        """Stop recording."""
        ...

    def wait(self, seconds: float, most: int) -> None:
        """Wait until a drain may be due, *seconds* at most. *most* is that of ``is_due``."""
        ...

    def is_due(self, most: int) -> bool:
        """Whether a drain is worth its CPU time: *most* events at least, or buffers that fill."""
        ...

    def drain(self) -> Drained:
        """Return what was recorded since the last drain."""
        ...

    def losses(self) -> Losses:
        """Return what found no room so far."""
        ...


@frozen
class Recorded:
    """A recording that has ended.

    Attributes:
        began_ns: CLOCK_BOOTTIME at its beginning.
        ended_ns: CLOCK_BOOTTIME at its end.
        ending: What ended it.
        events: Number of events in the raw file.
        names: Number of names there, at most ``MOST_NAMES``.
        losses: What found no room, names beyond the bound included.

    """

    began_ns: int
    ended_ns: int
    ending: Ending
    events: int
    names: int
    losses: Losses

    @property
    def seconds(self) -> float:
        """Its duration."""
        return (self.ended_ns - self.began_ns) / NS_PER_S


@frozen
class _Count:
    events: int = 0
    names: int = 0
    dropped_names: int = 0

    def fitting(self, drained: Drained) -> tuple[Drained, "_Count"]:
        """Return the drain without the names beyond the bound, and the count with it."""
        names = 0 if drained.names is None else len(drained.names)
        kept = min(names, MOST_NAMES - self.names)
        if drained.names is not None and kept < names:
            drained = evolve(drained, names=drained.names[:kept])
        return drained, _Count(
            self.events + drained.count, self.names + kept, self.dropped_names + names - kept
        )

    def left(self, bounds: Bounds) -> int:
        """Return how many events the bounds leave."""
        left_bytes = bounds.bytes - self.expected_bytes
        return min(bounds.events - self.events, left_bytes // BYTES_OF_EVENT)

    @property
    def expected_bytes(self) -> int:
        """An upper estimate of the events in the finished file."""
        return self.events * BYTES_OF_EVENT


def record(
    recorder: Recorder,
    raw: RawFile,
    descriptor: int,
    bounds: Bounds,
    asked_ending: Callable[[], Ending | None],
) -> Recorded:
    """Record into *raw*, the file *descriptor*, until a bound is reached or an end is asked for.

    The bound of seconds counts from the moment when all of the recorder is attached.
    Raises BpfError or OSError if the recorder cannot begin.
    """
    began_ns = boot_ns()
    recorder.begin()  # attaching takes seconds on a slow machine
    ends_ns = boot_ns() + round(bounds.seconds * NS_PER_S)
    count, ending = _Count(), None
    try:
        while ending is None:
            left_s = (ends_ns - boot_ns()) / NS_PER_S
            if left_s <= 0:
                ending = Ending.SECONDS
                break
            recorder.wait(min(LOOK_EVERY_S, left_s), count.left(bounds))
            if recorder.is_due(count.left(bounds)):
                count, ending = _drain(recorder, raw, count)
            ending = ending or asked_ending() or _reached(bounds, count, descriptor)
    finally:
        recorder.end()
    ended_ns = boot_ns()
    count, is_full = _drain(recorder, raw, count)
    losses = recorder.losses()
    losses = evolve(losses, names=losses.names + count.dropped_names)
    return Recorded(began_ns, ended_ns, is_full or ending, count.events, count.names, losses)


def boot_ns() -> int:
    """Return CLOCK_BOOTTIME, the clock of the events."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def free_bytes(descriptor: int) -> int:
    """Return the free space of a file's file system for this user."""
    status = os.fstatvfs(descriptor)
    return status.f_bavail * status.f_frsize


def _drain(recorder: Recorder, raw: RawFile, count: _Count) -> tuple[_Count, Ending | None]:
    drained, with_drain = count.fitting(recorder.drain())
    try:
        raw.write(drained)
    except OSError as error:
        if error.errno not in FULL:
            raise
        return count, Ending.DISK
    return with_drain, None


def _reached(bounds: Bounds, count: _Count, descriptor: int) -> Ending | None:
    if count.events >= bounds.events:
        return Ending.EVENTS
    if count.expected_bytes >= bounds.bytes:
        return Ending.BYTES
    return Ending.DISK if free_bytes(descriptor) < bounds.free_bytes else None
