"""The state directory of one instrument: made on first use, bounded, without links."""

import heapq
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from attrs import frozen

from temper_core.directory_tree import (
    TreeSize,
    files_of,
    make_directories,
    open_directory,
    remove_file,
    size_of,
)
from temper_core.errors import InputError, MachineError
from temper_core.restoring.instrument_directories import INSTRUMENTS, RECORDS

MODE = 0o700
MOST_FILES = 10_000
TRIMMED_AT_ONCE = 1024
MOST_ROUNDS = 20
MIB = 1024 * 1024
Writing = Callable[[], AbstractContextManager[object]]
"""A context around every change of a file. Raises MachineError while none is allowed."""
always: Writing = nullcontext
RECORD_PLACES = frozenset((name,) for name in RECORDS)
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@frozen
class SweepResult:
    """The files and bytes that a sweep has removed, and the size of the rest."""

    files: int
    size_bytes: int
    left: TreeSize


class InstrumentDirectory:
    """Implements ``StateDirectory`` below *base*, the agent's own directory."""

    def __init__(
        self,
        base: Path,
        name: str,
        limit_bytes: int,
        writing: Writing = always,
    ) -> None:
        self._base = base
        self._name = name
        self._writing = writing
        self._lock = threading.Lock()
        self.limit_bytes = limit_bytes

    @property
    def path(self) -> Path:
        """The directory, made on access. Raises MachineError if it cannot be made."""
        with self._made():
            return self._path

    def used_bytes(self) -> int:
        """Return the total size of its files, 0 without a directory."""
        return self.measure().size_bytes

    def measure(self) -> TreeSize:
        """Return the number of its files and their size, without making the directory."""
        try:
            with self._found() as directory:
                return size_of(directory)
        except FileNotFoundError:
            return TreeSize()
        except OSError:
            return TreeSize(is_whole=False)

    def write(self, name: str, content: bytes) -> Path:
        """Replace the file *name* as a whole, and return its path.

        Raises InputError for an invalid name, MachineError if the content does not fit.
        """
        if not FILE_NAME.fullmatch(name):
            raise InputError(
                f"{name!r} is not a valid name of a state file; it must match {FILE_NAME.pattern}"
            )
        with self._made() as directory:
            self._refuse_misfit(directory, name, len(content))
            try:
                _replace(directory, name, content)
            except OSError as error:
                raise MachineError(f"{self._path / name}: {error.strerror}") from error
        return self._path / name

    def trim(self) -> SweepResult | None:
        """Remove the oldest files until the rest fits. Return None if it fits already.

        Records of changed values stay.
        """
        remaining = self.measure()
        if self._fits(remaining):
            return None
        files = size = 0
        with (
            suppress(MachineError, OSError),
            self._lock,
            self._writing(),
            self._found() as directory,
        ):
            for _ in range(MOST_ROUNDS):
                removed, freed = _remove_oldest(directory, remaining, self.limit_bytes)
                files, size = files + removed, size + freed
                remaining = size_of(directory)
                if not removed or self._fits(remaining):
                    break
        return SweepResult(files, size, remaining)

    @property
    def _path(self) -> Path:
        return self._base / INSTRUMENTS / self._name

    def _fits(self, size: TreeSize) -> bool:
        return size.size_bytes <= self.limit_bytes and size.files <= MOST_FILES

    def _refuse_misfit(self, directory: int, name: str, size_bytes: int) -> None:
        size, before = size_of(directory), _regular_size(directory, name)
        used = size.size_bytes - (before or 0)
        if used + size_bytes > self.limit_bytes:
            raise MachineError(
                f"{self._path / name}: {size_bytes} bytes do not fit; the instrument's other "
                f"files take {used} of {self.limit_bytes}"
            )
        if before is None and size.files >= MOST_FILES:
            raise MachineError(f"{self._path}: holds {MOST_FILES} files already, the maximum")

    @contextmanager
    def _made(self) -> Iterator[int]:
        """Make the directory if it is missing, and open it."""
        if not self._base.is_absolute():
            raise MachineError(
                f"[safe_mode] state is not an absolute path, so the instrument {self._name} has no "
                "state directory"
            )
        with self._lock, self._writing():
            opened: list[int] = []
            try:
                self._open_all(opened)
                yield opened[-1]
            except OSError as error:
                raise MachineError(f"{self._path}: {self._problem(error)}") from error
            finally:
                for descriptor in opened:
                    os.close(descriptor)

    def _open_all(self, opened: list[int]) -> None:
        make_directories(self._base)
        opened.append(open_directory(self._base))
        for name in (INSTRUMENTS, self._name):
            with suppress(FileExistsError):
                os.mkdir(name, MODE, dir_fd=opened[-1])
            opened.append(open_directory(name, opened[-1]))
            status = os.fstat(opened[-1])
            if status.st_uid != os.geteuid():
                raise MachineError(
                    f"{self._path}: belongs to user {status.st_uid}, not to the agent"
                )
            if stat.S_IMODE(status.st_mode) != MODE:
                os.fchmod(opened[-1], MODE)

    @contextmanager
    def _found(self) -> Iterator[int]:
        opened: list[int] = []
        try:
            opened.append(open_directory(self._base))
            for name in (INSTRUMENTS, self._name):
                opened.append(open_directory(name, opened[-1]))
            yield opened[-1]
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _problem(self, error: OSError) -> str:
        for path in (self._base, self._path.parent, self._path):
            if path.is_symlink():
                return f"{path} is a link, and not followed"
            if path.exists() and not path.is_dir():
                return f"{path} is not a directory"
        return error.strerror or str(error)


def _replace(directory: int, name: str, content: bytes) -> None:
    """Write a new file and rename it to *name*: a crash leaves the old file or the new one."""
    beside = f".{name}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        os.unlink(beside, dir_fd=directory)
    try:
        with os.fdopen(os.open(beside, flags, 0o600, dir_fd=directory), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with suppress(OSError):
            os.unlink(beside, dir_fd=directory)
        raise


def _regular_size(directory: int, name: str) -> int | None:
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    return None


def _remove_oldest(directory: int, size: TreeSize, limit_bytes: int) -> tuple[int, int]:
    """Remove the oldest files of a tree of that *size*. Return their number and size."""
    files = freed = 0
    removable = (file for file in files_of(directory) if file.place not in RECORD_PLACES)
    oldest = heapq.nsmallest(TRIMMED_AT_ONCE, removable, key=lambda file: file.written_ns)
    for file in oldest:
        if size.size_bytes - freed <= limit_bytes and size.files - files <= MOST_FILES:
            break
        if remove_file(directory, file.place):
            files, freed = files + 1, freed + file.size_bytes
    return files, freed
