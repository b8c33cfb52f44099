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
"""Cgroups directly below a pod's that are read. Its owner may make any number of them."""
STALLS = {"cpu": ("some",), "memory": ("some", "full"), "io": ("some", "full")}
"""The lines of PSI that count, by resource. All threads of a cgroup wait for a CPU while its quota
is used up, so ``full`` of the CPU measures throttling only."""
LINES = sum(map(len, STALLS.values()))
_Place = tuple[str, str]
"""A hierarchy with a slash at its end, and the name of a file."""
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
    """Reads cgroups below *root*, of v2 or of the v1 controllers of a hybrid host.

    The last place of the files of a kind is looked at first.
    """

    root: Path = ROOT
    _found: dict[str, _Place] = field(factory=dict, init=False, eq=False, repr=False)

    def directories(self, path: str) -> Mapping[str, Path]:
        """Return the first directories in the cgroup *path*, by name."""
        for root in (self.root, self.root / "cpu"):
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
        cpu = self._content(path, "cpu", "cpu.stat") or ""
        memory = self._content(path, "memory", "memory.stat") or ""
        events = self._content(path, "memory", "memory.events", "memory.oom_control") or ""
        used = self._number(path, "memory.current", "memory.usage_in_bytes")
        inactive = _value(memory, "total_inactive_file", "inactive_file")
        return CgroupCounters(
            working_set_bytes=-1 if used is None else max(used - inactive, 0),
            periods=_value(cpu, "nr_periods"),
            throttled_periods=_value(cpu, "nr_throttled"),
            throttled_us=_value(cpu, "throttled_usec") or _value(cpu, "throttled_time") // 1000,
            high=_value(events, "high"),
            max=self._limit_hits(path, events),
            oom=_value(events, "oom"),
            oom_kill=_value(events, "oom_kill"),
            stalled_us=self._stalled_us(path),
        )

    def _limit_hits(self, path: str, events: str) -> int:
        """Return how often the limit of memory was hit. In v1 a file of its own has it."""
        if "\nmax " in f"\n{events}":
            return _value(events, "max")
        return self._number(path, "memory.failcnt") or 0

    def first_process(self, path: str) -> int | None:
        """Return the oldest process of the cgroup *path*: the kernel lists them by entry."""
        content = self._content(path, "cpu", "cgroup.procs") or ""
        first = content.partition("\n")[0]
        return int(first) if first.isdigit() and len(first) <= _LONGEST_ID else None

    def _stalled_us(self, path: str) -> Mapping[tuple[str, str], int]:
        """Return the totals of PSI. Empty if one is missing, as without ``CONFIG_PSI``."""
        totals: dict[tuple[str, str], int] = {}
        for resource, shares in STALLS.items():
            content = self._content(path, "unified", f"{resource}.pressure")
            if content is None:
                return {}
            found = dict(_totals(content))
            totals |= {(resource, name): found[name] for name in shares if name in found}
        return totals if len(totals) == LINES else {}

    def _number(self, path: str, *names: str) -> int | None:
        content = (self._content(path, "memory", *names) or "").strip()
        return int(content) if content.isdigit() else None

    def _content(self, path: str, controller: str, *names: str) -> str | None:
        """Return the first file of these *names*, in the v2 hierarchy or that of *controller*."""
        known = self._found.get(names[0])
        if known is not None and (content := _content(f"{known[0]}{path}/{known[1]}")) is not None:
            return content
        for root in (f"{self.root}/", f"{self.root}/{controller}/"):
            for name in names:
                content = _content(f"{root}{path}/{name}")
                if content is not None:
                    self._found[names[0]] = (root, name)
                    return content
        return None


def _content(path: str) -> str | None:
    """Return what one read of a kernel's file gives. The files that count come as a whole."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return os.read(descriptor, _LARGEST).decode("ascii", errors="replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _totals(content: str) -> Sequence[tuple[str, int]]:
    return [(match[1], int(match[2])) for match in _TOTAL.finditer(content)]


def _value(content: str, *names: str) -> int:
    """Return the number in the line of the first of these *names* that there is, 0 without any."""
    for name in names:
        begin = content.find(f"\n{name} ") + 1
        if begin or content.startswith(f"{name} "):
            text = content[begin + len(name) + 1 :].partition("\n")[0].strip()
            if text.isascii() and text.isdigit():
                return int(text)
    return 0
