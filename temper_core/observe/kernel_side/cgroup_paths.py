"""The paths of cgroups by the kernel side's numbers.

A number is the inode of the cgroup's directory (``st_ino``). Outside of the unified hierarchy its
upper bits name the hierarchy. The kernel side reports the path of every cgroup once. A number is
never reused, and only version 1 allows renaming a cgroup, which no runtime does.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import islice

from temper_core.observe.kernel_side.cgroup_handles import CgroupHandles
from temper_core.observe.process_text import engine_path

MOST_KNOWN = 8_192
"""More than a look can report, so that not every look has to report all of them again."""
MOST_OPENED = 1_024
"""Cgroups that are opened by number in a look, 13 us each."""
_FIRST_OF_VERSION_1 = 1 << 60


class CgroupPaths:
    """The known paths. A new value of ``names`` makes the kernel side report all of them again."""

    def __init__(self, unified_root: str) -> None:
        self.names = 1
        self._unified_root = unified_root
        self._known: dict[int, str] = {}
        self._not_found: set[int] = set()

    def learn(self, rows: Iterable[tuple[int, int, int, bytes]]) -> None:
        """Add the paths of a look: number, length of the names, whether complete, the names."""
        for cgroup, length, is_whole, names in rows:
            if is_whole:
                parts = names[:length].split(b"\0")[-2::-1]
                self._known[cgroup] = engine_path(b"/".join(parts).decode("utf-8", "replace"))

    def of(self, cgroups: Sequence[int]) -> list[str]:
        """Return the paths of *cgroups* in the engine's form, "" for an unknown one."""
        by_number = self._known
        missing = {number for number in cgroups if number not in by_number}
        self._not_found &= missing
        if missing - self._not_found:
            new = missing - self._not_found
            self._open(number for number in new if 0 < number < _FIRST_OF_VERSION_1)
            self._not_found = missing - by_number.keys()
        paths = [by_number.get(number, "") for number in cgroups]
        if len(by_number) > MOST_KNOWN:
            self._known = {number: by_number[number] for number in cgroups if number in by_number}
            self.names += 1
        return paths

    def _open(self, numbers: Iterable[int]) -> None:
        """Add the paths of cgroups that a look did not report: it had 128 others, or it is long.

        Without the right to open them they are reported by the following looks, except long ones.
        """
        try:
            with closing(CgroupHandles(self._unified_root)) as handles:
                for number in islice(numbers, MOST_OPENED):
                    path = handles.path_of(number)
                    if path is not None:
                        self._known[number] = engine_path(path)
        except OSError:
            return
