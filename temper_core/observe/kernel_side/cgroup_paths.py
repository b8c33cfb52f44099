"""The paths of cgroups by the numbers that the kernel side has for them.

A number is that of the cgroup's directory (``st_ino``), in its upper bits marked with the
hierarchy where it is not the unified one. The kernel side tells the path of every cgroup once: a
number is never given twice, and only version 1 allows to rename a cgroup, which nobody does.
"""

import os
from collections.abc import Iterable, Sequence

from temper_core.observe.process_text import engine_path

MOST_KNOWN = 8_192
"""More than a look can tell of, so that not every look has to have all of them told anew."""
_FIRST_OF_VERSION_1 = 1 << 60


class CgroupPaths:
    """What is known so far. ``names`` changes when the kernel side is to tell everything anew."""

    def __init__(self, unified_root: str) -> None:
        self.names = 1
        self._unified_root = unified_root
        self._known: dict[int, str] = {}
        self._not_found: set[int] = set()

    def learn(self, told: Iterable[tuple[int, int, int, bytes]]) -> None:
        """Take what a look told: number, length of the names, whether they are all, the names."""
        for cgroup, length, is_whole, names in told:
            if is_whole:
                parts = names[:length].split(b"\0")[-2::-1]
                self._known[cgroup] = engine_path(b"/".join(parts).decode("utf-8", "replace"))

    def of(self, cgroups: Sequence[int]) -> list[str]:
        """Return the paths of *cgroups* as the engine spells them, "" for an unknown one."""
        known = self._known
        missing = {number for number in cgroups if number not in known}
        self._not_found &= missing
        if missing - self._not_found:
            self._search({number for number in missing if 0 < number < _FIRST_OF_VERSION_1})
            self._not_found = missing - known.keys()
        paths = [known.get(number, "") for number in cgroups]
        if len(known) > MOST_KNOWN:
            self._known = {number: known[number] for number in cgroups if number in known}
            self.names += 1
        return paths

    def _search(self, wanted: set[int]) -> None:
        """Find their directories: there were too many new ones to be told, or a path too long."""
        if not wanted or not self._unified_root:
            return
        for folder, _, _ in os.walk(self._unified_root):
            try:
                number = os.stat(folder).st_ino  # noqa: PTH116 - hot path
            except OSError:
                continue
            if number in wanted:
                below = folder.removeprefix(self._unified_root)
                self._known[number] = engine_path(below)
                wanted.discard(number)
                if not wanted:
                    return
