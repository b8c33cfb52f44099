"""Descriptors that stay open between ticks, within a budget of the process."""

import os
import resource
from collections.abc import Iterable

MOST_KEPT = 8192
"""Cap on kept descriptors. The kernel holds about 5 KiB for each open file of /proc."""


def descriptor_limit() -> int:
    """Return the limit on kept descriptors: half of RLIMIT_NOFILE, at most ``MOST_KEPT``."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_KEPT if soft == resource.RLIM_INFINITY else min(soft // 2, MOST_KEPT)


class DescriptorBudget:
    """A count of kept descriptors with a ceiling. Shared by all parts of one observer."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = descriptor_limit() if limit is None else limit
        self.used = 0

    def open(self, path: str, *, leave: float = 0.0) -> int:
        """Open *path* and keep it open. Return -1 if the budget is used up.

        *leave* is the share of the budget that must stay free for more important files. Raises
        OSError as ``os.open`` does.
        """
        if self.used >= self.limit * (1 - leave):
            return -1
        descriptor = os.open(path, os.O_RDONLY)
        self.used += 1
        return descriptor

    def close(self, descriptor: int) -> None:
        """Close a descriptor of ``open``, and return it to the budget."""
        if descriptor >= 0:
            os.close(descriptor)
            self.used -= 1


class KeptFile:
    """A small kernel file that is read again and again from its start.

    It stays open if the budget allows. When the object behind it is gone (reading a removed cgroup
    fails with ENODEV), the path is opened anew. ``generation`` then increases, since the counters
    of the new object began at zero.
    """

    def __init__(self, path: str, budget: DescriptorBudget) -> None:
        self.path = path
        self.generation = 0
        self._budget = budget
        self._descriptor = -1

    def read(self, size: int = 4096) -> bytes:
        """Return up to *size* bytes. Raise OSError if the file cannot be read."""
        if self._descriptor >= 0:
            try:
                return os.pread(self._descriptor, size, 0)
            except OSError:
                self.close()
                self.generation += 1
        self._descriptor = self._budget.open(self.path)
        if self._descriptor < 0:
            return read_once(self.path, size)
        try:
            return os.pread(self._descriptor, size, 0)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the descriptor, if one is kept."""
        self._budget.close(self._descriptor)
        self._descriptor = -1


class FirstFile:
    """The first readable file of several, kept open. ``index`` is its position."""

    def __init__(self, paths: Iterable[str], budget: DescriptorBudget) -> None:
        self._files = [KeptFile(path, budget) for path in paths]
        self.index = 0

    @property
    def generation(self) -> int:
        """Increases when the object behind the file was recreated."""
        return sum(file.generation for file in self._files)

    def read(self) -> bytes:
        """Return its content, empty if no file can be read."""
        order = range(len(self._files))
        for index in (self.index, *order) if self.index else order:
            try:
                content = self._files[index].read()
            except OSError:
                continue
            self.index = index
            return content
        return b""

    def close(self) -> None:
        """Close all descriptors."""
        for file in self._files:
            file.close()


def read_once(path: str, size: int = 4096) -> bytes:
    """Open *path*, read up to *size* bytes and close it. Raise OSError on failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
