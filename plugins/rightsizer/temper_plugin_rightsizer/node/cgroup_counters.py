"""The counters of a container's cgroup: throttling and memory.

The files are those of cgroup v2 (cgroup-v2.rst, "CPU Interface Files" and "Memory Interface
Files"). On a hybrid host the controllers of v1 have the same counters under other names.
"""

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from attrs import frozen

from temper_plugin_rightsizer.demand.interval import Counts

ROOT = Path("/sys/fs/cgroup")
MOST_DIRECTORIES = 256
"""Cgroups directly below a pod's that are read. Whoever owns it may make any number of them."""
_LARGEST = 64 * 1024
_LONGEST_ID = 10


@frozen
class CgroupCounters:
    """Totals of a cgroup since it was made. ``working_set_bytes`` is the present use.

    The working set is the use without inactive pages of files, as cAdvisor has it. It is -1 if no
    controller accounts for memory.
    """

    working_set_bytes: int = -1
    periods: int = 0
    throttled_periods: int = 0
    throttled_us: int = 0
    high: int = 0
    max: int = 0
    oom: int = 0
    oom_kill: int = 0

    def since(self, before: "CgroupCounters | None") -> Counts:
        """Return the increase since *before*. A counter that fell back began anew."""
        last = before or self

        def increase(name: str) -> int:
            now, then = getattr(self, name), getattr(last, name)
            return int(now - then if now >= then else now)

        return Counts(
            periods=increase("periods"),
            throttled_periods=increase("throttled_periods"),
            throttled_s=increase("throttled_us") / 1e6,
            peak_bytes=max(self.working_set_bytes, 0),
            least_bytes=max(self.working_set_bytes, 0),
            high=increase("high"),
            max=increase("max"),
            oom=increase("oom"),
            oom_kill=increase("oom_kill"),
        )


@frozen
class CgroupFiles:
    """Reads cgroups below *root*, of v2 or of the v1 controllers of a hybrid host."""

    root: Path = ROOT

    def directories(self, path: str) -> Mapping[str, Path]:
        """Return the first directories in the cgroup *path*, by name."""
        for root in self._roots("cpu"):
            try:
                with os.scandir(root / path) as entries:
                    names = (entry.name for entry in entries if entry.is_dir())
                    first = sorted(islice(names, MOST_DIRECTORIES))
            except OSError:
                continue
            return {name: root / path / name for name in first}
        return {}

    def read(self, path: str) -> CgroupCounters:
        """Return the counters of the cgroup *path*. Those that cannot be read are missing."""
        cpu = self._pairs("cpu", path, ("cpu.stat",))
        memory = self._pairs("memory", path, ("memory.stat",))
        events = self._pairs("memory", path, ("memory.events", "memory.oom_control"))
        used = self._number(path, ("memory.current", "memory.usage_in_bytes"))
        inactive = memory.get("total_inactive_file", memory.get("inactive_file", 0))
        return CgroupCounters(
            working_set_bytes=-1 if used is None else max(used - inactive, 0),
            periods=cpu.get("nr_periods", 0),
            throttled_periods=cpu.get("nr_throttled", 0),
            throttled_us=cpu.get("throttled_usec", cpu.get("throttled_time", 0) // 1000),
            high=events.get("high", 0),
            max=events.get("max", 0) or self._number(path, ("memory.failcnt",)) or 0,
            oom=events.get("oom", 0),
            oom_kill=events.get("oom_kill", 0),
        )

    def first_process(self, path: str) -> int | None:
        """Return the oldest process of the cgroup *path*: the kernel lists them by entry."""
        for root in self._roots("cpu"):
            content = _content(root / path / "cgroup.procs")
            first = (content or "").partition("\n")[0]
            if first.isdigit() and len(first) <= _LONGEST_ID:
                return int(first)
        return None

    def _roots(self, controller: str) -> Sequence[Path]:
        return (self.root, self.root / controller)

    def _pairs(self, controller: str, path: str, names: Sequence[str]) -> Mapping[str, int]:
        for root in self._roots(controller):
            for name in names:
                content = _content(root / path / name)
                if content is not None:
                    return dict(_pairs(content))
        return {}

    def _number(self, path: str, names: Sequence[str]) -> int | None:
        for root in self._roots("memory"):
            for name in names:
                content = _content(root / path / name)
                if content is not None and content.strip().isdigit():
                    return int(content)
        return None


def _content(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("ascii", errors="replace")
    except OSError:
        return None


def _pairs(content: str) -> Sequence[tuple[str, int]]:
    lines = (line.split() for line in content.splitlines())
    return [
        (words[0], int(words[1]))
        for words in lines
        if len(words) == 2 and words[1].isdigit()  # noqa: PLR2004
    ]
