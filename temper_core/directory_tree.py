"""A directory tree read and removed through descriptors: no link is followed, no mount entered."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 32
"""Levels of directories. Each takes a descriptor while the tree is read."""
MOST_ENTRIES = 100_000
"""Entries of one tree that are looked at, or removed, at once."""


@frozen
class TreeFile:
    """A regular file: the names that lead to it, its size, and when it was last written."""

    place: tuple[str, ...]
    size_bytes: int
    written_ns: int


@frozen
class TreeSize:
    """The regular files of a tree. ``is_whole`` is false where not all of it could be read."""

    files: int = 0
    size_bytes: int = 0
    is_whole: bool = True


class Misplaced(OSError):  # noqa: N818 - names what was found
    """A part of the tree is deeper than ``DEEPEST``, or on another file system."""


@frozen
class _Reading:
    """One pass over a tree: ``missed`` holds what could not be read."""

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
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    with _entered(name, directory, self.device, len(place)) as below:
                        yield from self.files(below, (*place, name))
                elif stat.S_ISREG(found.st_mode):
                    yield TreeFile((*place, name), found.st_size, found.st_mtime_ns)
            except FileNotFoundError:
                continue
            except OSError:
                self.missed.append(name)


def open_directory(path: Path | str, parent: int | None = None) -> int:
    """Open a directory that is no link. Raise OSError otherwise."""
    return os.open(path, DIRECTORY, dir_fd=parent)


def files_of(directory: int) -> Iterator[TreeFile]:
    """Yield the regular files below an open directory. What cannot be read is left out."""
    yield from _Reading(os.fstat(directory).st_dev).files(directory)


def size_of(directory: int) -> TreeSize:
    """Return how many regular files are below an open directory, and their size."""
    reading, files, size = _Reading(os.fstat(directory).st_dev), 0, 0
    for each in reading.files(directory):
        files, size = files + 1, size + each.size_bytes
    return TreeSize(files, size, not reading.missed)


def remove_file(directory: int, place: tuple[str, ...]) -> bool:
    """Remove the regular file at *place* below an open directory; False where there is none."""
    *above, name = place
    opened: list[int] = []
    try:
        for each in above:
            opened.append(open_directory(each, opened[-1] if opened else directory))
        parent = opened[-1] if opened else directory
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            return False
        os.unlink(name, dir_fd=parent)
    except OSError:
        return False
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return True


def remove_tree(parent: int, name: str) -> None:
    """Remove the directory *name* of an open one with all below it. Raise OSError at a misfit."""
    device = os.fstat(parent).st_dev
    _remove_below(parent, name, device, 0, [0])


def _remove_below(parent: int, name: str, device: int, depth: int, removed: list[int]) -> None:
    with _entered(name, parent, device, depth) as directory:
        for each in _names(directory):
            removed[0] += 1
            if removed[0] > MOST_ENTRIES:
                raise Misplaced(f"holds more than {MOST_ENTRIES} entries; ask once more")
            found = os.stat(each, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                _remove_below(directory, each, device, depth + 1, removed)
            else:
                os.unlink(each, dir_fd=directory)
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
    """Yield the names in an open directory. Listing shares its position, so it is a new one."""
    again = os.open(".", DIRECTORY, dir_fd=directory)
    try:
        with os.scandir(again) as entries:
            for entry in entries:
                yield entry.name
    finally:
        os.close(again)
