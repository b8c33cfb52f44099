"""What agent and engine have used so far, by the kernel's counts and the agent's own."""

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from bench.ladder.kernel import PROC, Scheduler, cpu_stat, scheduler

ENGINE = "scx_layered"
MIB = 1 << 20
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PART = re.compile(r'temper_overhead_cpu_seconds_total\{part="(\w+)"\} (\S+)')
BPF = re.compile(r"^temper_overhead_bpf_cpu_seconds_total (\S+)", re.MULTILINE)

Json = dict[str, Any]


@frozen
class Reading:
    """CPU seconds up to now. ``agent_s`` has the agent's helpers, and not the engine.

    ``parts_s`` and ``bpf_s`` are what the agent's own metrics say.
    """

    at_s: float
    scheduler: Scheduler
    agent_s: float
    engine_s: float
    agent_mib: float
    engine_mib: float
    parts_s: Mapping[str, float]
    bpf_s: float

    @classmethod
    def take(cls, agent: int, cgroup: Path, metrics: str) -> Self:
        """Read all counts of the agent with that process id, and of the engine in its cgroup."""
        engine = engine_in(cgroup)
        engine_s = run_s(engine) if engine else 0.0
        found = BPF.search(metrics)
        return cls(
            time.monotonic(),
            scheduler(PROC / str(agent) / "root/sys/kernel/sched_ext"),
            cpu_stat(cgroup)["usage_usec"] / 1e6 - engine_s,
            engine_s,
            resident_mib(agent),
            resident_mib(engine) if engine else 0.0,
            {part: float(value) for part, value in PART.findall(metrics)},
            float(found[1]) if found else 0.0,
        )

    def since(self, before: Self) -> Json:
        """Return the use since a reading before it, in per cent of a core."""
        seconds = self.at_s - before.at_s

        def percent(now_s: float, then_s: float) -> float:
            return round(100 * (now_s - then_s) / seconds, 4)

        return {
            "seconds": round(seconds, 2),
            "agent_percent": percent(self.agent_s, before.agent_s),
            "engine_percent": percent(self.engine_s, before.engine_s),
            "bpf_percent": percent(self.bpf_s, before.bpf_s),
            "agent_mib": round(self.agent_mib, 1),
            "engine_mib": round(self.engine_mib, 1),
            "attaches": self.scheduler.attaches - before.scheduler.attaches,
            "scheduler": self.scheduler.state,
            "parts_percent": {
                part: percent(now_s, before.parts_s.get(part, 0.0))
                for part, now_s in self.parts_s.items()
            },
        }


def engine_in(cgroup: Path, proc: Path = PROC) -> int | None:
    """Return the process id of the engine in a cgroup, None without one."""
    for pid in (cgroup / "cgroup.procs").read_text().split():
        with suppress(OSError):
            if (proc / pid / "comm").read_text().strip() == ENGINE:
                return int(pid)
    return None


def run_s(pid: int, proc: Path = PROC) -> float:
    """Return how long the living threads of a process ran."""
    ran_ns = 0
    for thread in (proc / str(pid) / "task").iterdir():
        with suppress(OSError):
            ran_ns += int((thread / "schedstat").read_text().split()[0])
    return ran_ns / 1e9


def resident_mib(pid: int, proc: Path = PROC) -> float:
    """Return the resident memory of a process."""
    return int((proc / str(pid) / "statm").read_text().split()[1]) * PAGE_BYTES / MIB
