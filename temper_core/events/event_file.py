"""The file in which events outlive the agent: JSON lines, bounded in bytes, one writer at a time.

Lines are appended. A file beyond its bound is replaced as a whole by the newest events, so that a
crash leaves the old one or the new one. Damaged lines are skipped.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from attrs import define, field, frozen

from temper_core.directory_tree import make_directories
from temper_core.events.document import read_line
from temper_core.forked_children import close_in_children
from temper_core.records.events import Event

FILE_NAME = "events.jsonl"
LARGEST_BYTES = 1024 * 1024
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o600
ATTEMPTS = 10
LOOK_S = 0.01
"""Longer than another process holds the lock only to see whether it is held."""


class NotOursError(OSError):
    """The entry at the path is no event file, or another agent writes it."""


class HeldError(NotOursError):
    """Another agent writes the file."""


@frozen
class Remembered:
    """The content of a file. ``damaged`` counts the lines that could not be read."""

    events: tuple[Event, ...] = ()
    damaged: int = 0


def is_written(path: Path) -> bool:
    """Whether an agent has the event file at *path* open. Raises OSError if that is not known."""
    try:
        descriptor = os.open(path, _FLAGS & ~(os.O_RDWR | os.O_APPEND))
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        _lock(descriptor, path)
    except NotOursError:
        return True
    finally:
        os.close(descriptor)
    return False


@define(eq=False)
class EventFile:
    """The file at *path*, readable by its owner only. Every method raises OSError.

    It is locked while it is open: of two agents with one state directory, one writes.
    """

    path: Path
    largest_bytes: int = LARGEST_BYTES
    _descriptor: int = field(default=-1, init=False)
    _is_torn: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Let no child that a plugin forks keep the lock."""
        close_in_children(self)

    def read(self) -> Remembered:
        """Return the events, oldest first. Of a far too large file only its end is read."""
        try:
            descriptor = os.open(self.path, _FLAGS & ~(os.O_RDWR | os.O_APPEND))
        except (FileNotFoundError, NotADirectoryError):
            return Remembered()
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotOursError(f"{self.path} is not a regular file")
            # With closefd, fdopen() leaves the descriptor open if it fails.
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return _remembered(self._lines(file))
        finally:
            os.close(descriptor)

    def hold(self) -> None:
        """Open the file, and lock it against other agents. Raises HeldError if one has it."""
        for _ in range(ATTEMPTS - 1):
            with suppress(HeldError):
                self._open()
                return
            time.sleep(LOOK_S)
        self._open()

    def append(self, lines: Iterable[bytes]) -> bool:
        """Add *lines*. Return False if the file must be replaced: it is full or its end is torn."""
        self._open()
        text = b"".join(lines)
        if self._is_torn or os.fstat(self._descriptor).st_size + len(text) > self.largest_bytes:
            return False
        self._is_torn = True  # until everything is written
        _write(self._descriptor, text)
        os.fdatasync(self._descriptor)
        self._is_torn = False
        return True

    def replace(self, lines: Iterable[bytes]) -> None:
        """Replace the file's content by *lines*."""
        self._open()
        beside = self.path.with_name(f"{self.path.name}.new")
        with suppress(FileNotFoundError):
            beside.unlink()
        descriptor = os.open(beside, _FLAGS | os.O_CREAT | os.O_EXCL, _MODE)
        try:
            _lock(descriptor, beside)
            _write(descriptor, b"".join(lines))
            os.fdatasync(descriptor)
            beside.replace(self.path)
        except OSError:
            os.close(descriptor)
            with suppress(OSError):
                beside.unlink()
            raise
        self.close()
        self._descriptor, self._is_torn = descriptor, False

    def remove(self) -> None:
        """Remove the file if it is this agent's."""
        if self._descriptor >= 0 and self._is_at_path(self._descriptor):
            self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self) -> None:
        if self._descriptor >= 0 and not self._is_at_path(self._descriptor):
            self.close()
        if self._descriptor >= 0:
            return
        make_directories(self.path.parent)
        descriptor = os.open(self.path, _FLAGS | os.O_CREAT, _MODE)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotOursError(f"{self.path} is not a regular file")
            _lock(descriptor, self.path)
            if not self._is_at_path(descriptor):
                raise HeldError(f"{self.path} was replaced or removed meanwhile")
            self._is_torn = not _ends_in_newline(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _is_at_path(self, descriptor: int) -> bool:
        """Whether the open file is still the one at the path: it may have been removed."""
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(status, os.fstat(descriptor))

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the lines. Of a far too large file only its end, so that no line is unbounded."""
        skipped = os.fstat(file.fileno()).st_size - 2 * self.largest_bytes
        if skipped > 0:
            file.seek(skipped)
            file.readline()
        yield from file


def _remembered(lines: Iterable[bytes]) -> Remembered:
    events: list[Event] = []
    damaged = last = 0
    for line in lines:
        event = read_line(line)
        if event is None or event.number <= last:  # out of order: another program wrote it
            damaged += 1
        else:
            events.append(event)
            last = event.number
    return Remembered(tuple(events), damaged)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise HeldError(f"{path} is written by another agent") from error
    except OSError:  # the file system has no locks
        return


def _write(descriptor: int, text: bytes) -> None:
    remaining = memoryview(text)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _ends_in_newline(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
