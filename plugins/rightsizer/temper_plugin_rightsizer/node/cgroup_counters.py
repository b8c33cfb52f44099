"""The counters of a container's cgroup: throttling, memory and pressure.

The files are those of cgroup v2 (cgroup-v2.rst, "CPU Interface Files" and "Memory Interface
Files"). On a hybrid host the controllers of v1 have the same counters under other names. Pressure
(accounting/psi.rst) is that of the v2 hierarchy, which a hybrid host has below ``unified``.
"""

import os
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from attrs import field, frozen

from temper_plugin_rightsizer.demand.interval import Counts

ROOT = Path("/sys/fs/cgroup")
MOST_DIRECTORIES = 256
"""Cgroups directly below a pod's that are read. Whoever owns it may make any number of them."""
STALLS = {"cpu": ("some",), "memory": ("some", "full"), "io": ("some", "full")}
"""The lines of PSI that count, by resource. All threads of a cgroup wait for a CPU while its quota
is used up, so ``full`` of the CPU tells of throttling only."""
_TOTAL = re.compile(r"^(some|full) .*\btotal=(\d{1,19})$", re.ASCII | re.MULTILINE)
_LARGEST = 64 * 1024
_LONGEST_ID = 10


@frozen
class CgroupCounters:
    """Totals of a cgroup since it was made. ``working_set_bytes`` is the present use.

    The working set is the use without inactive pages of files, as cAdvisor has it. It is -1 if no
    controller accounts for memory. ``stalled_us`` has the totals of PSI by resource and line, such
    as ``cpu some``. It is empty if the kernel has none for the cgroup.
    """

    working_set_bytes: int = -1
    periods: int = 0
    throttled_periods: int = 0
    throttled_us: int = 0
    high: int = 0
    max: int = 0
    oom: int = 0
    oom_kill: int = 0
    stalled_us: Mapping[tuple[str, str], int] = field(factory=dict)

    def since(self, before: "CgroupCounters | None", seconds: float) -> Counts:
        """Return the increase since *before*, *seconds* ago.

        A counter that fell back began anew.
        """
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
            **self._stalls(before, seconds),
        )

    def _stalls(self, before: "CgroupCounters | None", seconds: float) -> dict[str, float]:
        """Return the stalled time since *before*, and the time in which it was measured.

        Nothing was measured of a cgroup that was not known before, or has begun anew since.
        """
        if before is None or not self.stalled_us:
            return {}
        increases = {
            line: now - before.stalled_us.get(line, now + 1)
            for line, now in self.stalled_us.items()
        }
        if min(increases.values()) < 0:
            return {}
        stalls = {
            f"{resource}_{share}_s": min(increase / 1e6, seconds)
            for (resource, share), increase in increases.items()
        }
        return {"pressure_s": seconds, **stalls}


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
            stalled_us=self._stalled_us(path),
        )

    def first_process(self, path: str) -> int | None:
        """Return the oldest process of the cgroup *path*: the kernel lists them by entry."""
        for root in self._roots("cpu"):
            content = _content(root / path / "cgroup.procs")
            first = (content or "").partition("\n")[0]
            if first.isdigit() and len(first) <= _LONGEST_ID:
                return int(first)
        return None

    def _stalled_us(self, path: str) -> Mapping[tuple[str, str], int]:
        """Return the totals of PSI. Empty if one is missing, as without ``CONFIG_PSI``."""
        totals: dict[tuple[str, str], int] = {}
        for resource, shares in STALLS.items():
            for root in (self.root, self.root / "unified"):
                content = _content(root / path / f"{resource}.pressure")
                if content is not None:
                    found = dict(_totals(content))
                    totals |= {(resource, name): found[name] for name in shares if name in found}
                    break
        return totals if len(totals) == sum(map(len, STALLS.values())) else {}

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


def _totals(content: str) -> Sequence[tuple[str, int]]:
    return [(match[1], int(match[2])) for match in _TOTAL.finditer(content)]


def _pairs(content: str) -> Sequence[tuple[str, int]]:
    lines = (line.split() for line in content.splitlines())
    return [
        (words[0], int(words[1]))
        for words in lines
        if len(words) == 2 and words[1].isdigit()  # noqa: PLR2004
    ]
