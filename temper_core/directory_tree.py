"""Makes, reads, removes and synchronises directories that others may change.

No link is followed.
"""

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from attrs import field, frozen

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 32
"""Levels of directories. Each takes a descriptor while the tree is read."""
MOST_ENTRIES = 100_000
"""Entries of one tree that are read, or removed, in one call."""
MOST_DIRECTORIES = 20_000
"""Directories of one tree that ``directories_below`` yields."""


@frozen
class TreeFile:
    """A regular file: its path as a tuple of names, its size, and its time of modification."""

    place: tuple[str, ...]
    size_bytes: int
    written_ns: int


@frozen
class TreeSize:
    """Count and size of a tree's regular files. ``is_whole`` is false if a part was unreadable."""

    files: int = 0
    size_bytes: int = 0
    is_whole: bool = True


class Misplaced(OSError):  # noqa: N818 - names what was found
    """A part of the tree is deeper than ``DEEPEST``, or on another file system."""


@frozen
class _Reading:
    """One pass over a tree. ``missed`` holds the names that could not be read."""

    device: int
    seen: list[int] = field(factory=lambda: [0])
    missed: list[str] = field(factory=list)

    def files(self, directory: int, place: tuple[str, ...] = ()) -> Iterator[TreeFile]:
        """Yield the regular files below an open directory."""
        for name in _names(directory):
            self.seen[0] += 1
            if self.seen[0] > MOST_ENTRIES:
                self.missed.append(name)
                return
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    with _entered(name, directory, self.device, len(place)) as below:
                        yield from self.files(below, (*place, name))
                elif stat.S_ISREG(status.st_mode):
                    yield TreeFile((*place, name), status.st_size, status.st_mtime_ns)
            except FileNotFoundError:
                continue
            except OSError:
                self.missed.append(name)


def nearest_existing(path: Path) -> Path:
    """Return *path*, or the nearest of its parents that exists.

    Raises OSError if that cannot be looked at, which ``Path.exists`` hides from Python 3.14 on.
    """
    for place in (path, *path.parents):
        with suppress(FileNotFoundError, NotADirectoryError):
            place.stat()
            return place
    return Path("/")


def make_directories(path: Path, mode: int = 0o755) -> None:
    """Make *path*, and its parents with 0755. Existing directories stay as they are.

    ``Path.mkdir`` makes parents as the umask of the process allows, and a plugin may have set that
    to 0. Raises OSError.
    """
    try:
        path.mkdir(mode)
    except FileNotFoundError:
        if path.parent.is_dir():  # a file system without new directories, as /proc
            raise
        make_directories(path.parent)
        make_directories(path, mode)
    except OSError:
        if not path.is_dir():
            raise


def sync_directory(path: Path) -> None:
    """Write the names in *path* to the disk, so that a new one outlives a crash of the machine.

    A file that is replaced or removed may otherwise have its old state after a crash: fsync(2).
    Does nothing where it is impossible.
    """
    with suppress(OSError):
        descriptor = open_directory(path)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def directories_below(top: Path | str, most: int = MOST_DIRECTORIES) -> Iterator[str]:
    """Yield *top* and the directories below it, parents first, at most *most* of them.

    Those that cannot be read count as empty. The tree may be of any depth: os.walk of Python 3.11
    calls itself for each level, so that the maker of a deep tree could end its reader.
    """
    pending = deque([os.fspath(top)])
    for _ in range(most):
        if not pending:
            return
        path = pending.popleft()
        yield path
        with suppress(OSError), os.scandir(path) as entries:
            below = (entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
            pending.extend(islice(below, most))


def open_directory(path: Path | str, parent: int | None = None) -> int:
    """Open a directory. Raise OSError if it is a link or no directory."""
    return os.open(path, DIRECTORY, dir_fd=parent)


def files_of(directory: int) -> Iterator[TreeFile]:
    """Yield the regular files below an open directory, except unreadable parts."""
    yield from _Reading(os.fstat(directory).st_dev).files(directory)


def size_of(directory: int) -> TreeSize:
    """Return the number and size of the regular files below an open directory."""
    reading, files, size = _Reading(os.fstat(directory).st_dev), 0, 0
    for file in reading.files(directory):
        files, size = files + 1, size + file.size_bytes
    return TreeSize(files, size, not reading.missed)


def remove_file(directory: int, place: tuple[str, ...]) -> bool:
    """Remove the regular file at *place* below an open directory. Return False if that fails."""
    *above, name = place
    opened: list[int] = []
    try:
        for component in above:
            opened.append(open_directory(component, opened[-1] if opened else directory))
        parent = opened[-1] if opened else directory
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            return False
        os.unlink(name, dir_fd=parent)
    except OSError:
        return False
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return True


def remove_tree(parent: int, name: str) -> None:
    """Remove the directory *name* in an open one with its content. Raise OSError on failure.

    Raises Misplaced (an OSError) for deep trees, other file systems and too many entries.
    """
    device = os.fstat(parent).st_dev
    _remove_below(parent, name, device, 0, [0])


def _remove_below(parent: int, name: str, device: int, depth: int, removed: list[int]) -> None:
    with _entered(name, parent, device, depth) as directory:
        for entry in _names(directory):
            removed[0] += 1
            if removed[0] > MOST_ENTRIES:
                raise Misplaced(f"holds more than {MOST_ENTRIES} entries; remove it again")
            status = os.stat(entry, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _remove_below(directory, entry, device, depth + 1, removed)
            else:
                os.unlink(entry, dir_fd=directory)
    os.rmdir(name, dir_fd=parent)


@contextmanager
def _entered(name: str, parent: int, device: int, depth: int) -> Iterator[int]:
    if depth >= DEEPEST:
        raise Misplaced(f"holds directories deeper than {DEEPEST} levels")
    descriptor = open_directory(name, parent)
    try:
        if os.fstat(descriptor).st_dev != device:
            raise Misplaced(f"another file system is mounted at {name}")
        yield descriptor
    finally:
        os.close(descriptor)


def _names(directory: int) -> Iterator[str]:
    """Yield the names in an open directory.

    It is opened again, since a duplicate descriptor would share the position of the listing.
    """
    again = os.open(".", DIRECTORY, dir_fd=directory)
    try:
        with os.scandir(again) as entries:
            for entry in entries:
                yield entry.name
    finally:
        os.close(again)
