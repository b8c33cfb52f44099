"""Who ran on which CPU, and when: every switch that the kernel made in a window, by tracefs."""

import re
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TRACING = Path("/sys/kernel/tracing")
SWITCH = TRACING / "events/sched/sched_switch/enable"
BUFFER_KB = 8192
IDLE, KTHREADD = 0, 2
_LINE = re.compile(
    r"\[(?P<cpu>\d+)\] \S+ +(?P<at>\d+\.\d+): sched_switch: .* prev_pid=(?P<before>\d+) .*"
    r"==> next_comm=(?P<comm>.*) next_pid=(?P<after>\d+) next_prio="
)


@dataclass(frozen=True)
class Stay:
    """A thread had a CPU, from *since* to *until*; in seconds."""

    cpu: int
    tid: int
    since: float
    until: float

    @property
    def length_s(self) -> float:
        """How long that was."""
        return self.until - self.since


@dataclass(frozen=True)
class Window:
    """All that ran in a window, idling left out, by CPU and in order; and what they were called."""

    by_cpu: Mapping[int, list[Stay]]
    names: Mapping[int, str]
    lost: int

    @property
    def stays(self) -> Iterator[Stay]:
        """Every stay on every CPU."""
        for stays in self.by_cpu.values():
            yield from stays

    def busy(self, cpu: int, since: float, until: float) -> Iterator[Stay]:
        """Yield what ran on a CPU between two times."""
        stays = self.by_cpu.get(cpu, [])
        first = max(bisect_right(stays, since, key=lambda stay: stay.since) - 1, 0)
        for stay in stays[first:]:
            if stay.since >= until:
                break
            if stay.until > since:
                yield Stay(cpu, stay.tid, max(stay.since, since), min(stay.until, until))


def watch(seconds: float, keep: Path | None) -> Window:
    """Let the kernel tell every switch for *seconds*; what it tells is also written to *keep*."""
    (TRACING / "tracing_on").write_text("0")
    (TRACING / "buffer_size_kb").write_text(str(BUFFER_KB))
    (TRACING / "trace").write_text("")
    SWITCH.write_text("1")
    (TRACING / "tracing_on").write_text("1")
    time.sleep(seconds)
    (TRACING / "tracing_on").write_text("0")
    SWITCH.write_text("0")
    told = (TRACING / "trace").read_text(errors="replace")
    lost = sum(_lost(stats) for stats in TRACING.glob("per_cpu/cpu*/stats"))
    (TRACING / "trace").write_text("")
    if keep is not None:
        keep.write_text(told)
    return _window(_LINE.finditer(told), lost)


def used_by(window: Window, stays: Iterable[Stay]) -> str:
    """Say who used how much, the most first."""
    used: defaultdict[str, float] = defaultdict(float)
    for stay in stays:
        used[window.names.get(stay.tid, str(stay.tid))] += stay.length_s
    most = sorted(used.items(), key=lambda item: -item[1])[:8]
    return ", ".join(f"{name} {seconds:.4f} s" for name, seconds in most) or "nobody"


def kernel_threads() -> set[int]:
    """Return the kernel's own threads."""
    found = {KTHREADD}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[1]) == KTHREADD:
            found.add(int(stat.parent.name))
    return found


def _lost(stats: Path) -> int:
    return sum(
        int(line.partition(":")[2])
        for line in stats.read_text().splitlines()
        if line.startswith(("overrun", "dropped events"))
    )


def _window(switches: Iterable[re.Match[str]], lost: int) -> Window:
    by_cpu: defaultdict[int, list[Stay]] = defaultdict(list)
    names: dict[int, str] = {}
    since: dict[int, float] = {}
    for switch in switches:
        cpu, at = int(switch["cpu"]), float(switch["at"])
        before, after = int(switch["before"]), int(switch["after"])
        names[after] = switch["comm"]
        if cpu in since and before != IDLE:
            by_cpu[cpu].append(Stay(cpu, before, since[cpu], at))
        since[cpu] = at
    return Window(by_cpu, names, lost)
