"""The file of the threads whose nice value is changed, for the case that the agent is killed.

It is in the directory for run-time files, since thread ids are those of this boot.
"""

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "niceness.json"
SCHEMA_VERSION = 1
LARGEST_BYTES = 1024 * 1024
MODE = 0o600
FOREIGN = (
    "has threads that this version does not understand; their nice values stay until the version "
    "that wrote it restores them, or renice(1) and the removal of the file"
)


class NicedThread(NamedTuple):
    """A thread, by its id and its start in ns since boot, and the nice value that was set.

    ``leader`` and ``leader_start_ns`` are those of its process, 0 for the leader itself.
    """

    tid: int
    start_ns: int
    nice: int
    leader: int = 0
    leader_start_ns: int = 0


class NiceRecord:
    """Writes and reads the file in *directory*.

    ``failed`` is whether the last write failed. ``is_foreign`` is whether the last ``read`` found
    threads that it did not understand, as of another version. Such a file is the only trace of
    their nice values, so it is neither replaced nor removed.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self.failed = False
        self.is_foreign = False

    def write(self, threads: Iterable[NicedThread]) -> str:
        """Replace the file by *threads*. Return why that failed, empty if it did not."""
        if self.is_foreign:
            self.failed = True
            return f"boost and latency are off: {self.path} {FOREIGN}"
        document = {"schema_version": SCHEMA_VERSION, "threads": [*map(list, threads)]}
        new = self.path.with_name(f"{FILE_NAME}.new")
        try:
            with suppress(FileNotFoundError):
                new.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(new, flags, MODE), "w", encoding="ascii") as file:
                json.dump(document, file)
            new.replace(self.path)
        except OSError as error:
            self.failed = True
            return f"boost and latency are off: {self.path}: {error.strerror}"
        self.failed = False
        return ""

    def read(self) -> tuple[NicedThread, ...]:
        """Return the recorded threads that are understood. A missing file gives none."""
        self.is_foreign = False
        rows, threads = [], []
        try:
            document = json.loads(self._text())
            rows = [*document["threads"]]
            self.is_foreign = document["schema_version"] != SCHEMA_VERSION
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            self.is_foreign = True
        if self.is_foreign:
            return ()
        for row in rows:
            try:
                threads.append(NicedThread(*map(_number, row)))
            except TypeError:
                self.is_foreign = True
        return tuple(threads)

    def remove(self) -> None:
        """Remove the file, unless it is foreign. A missing file is no error."""
        if self.is_foreign:
            return
        for path in (self.path, self.path.with_name(f"{FILE_NAME}.new")):
            with suppress(OSError):
                path.unlink()

    def _text(self) -> bytes:
        # A pipe of that name must not block.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self.path, flags)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                return b""
            return file.read(LARGEST_BYTES)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value
