"""Measures one point: a load at one level with one seed, under whatever schedules the node."""

import json
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from bench.ladder.agent import Agent, Json
from bench.ladder.kernel import Scheduler, cpu_stat, cpu_times, idle_shares, scheduler
from bench.ladder.loads import Load, Server, command
from bench.ladder.pods import running
from bench.ladder.spreads import summary

SPINNERS_SETTLE_S = 0.6
BEGIN = "begin\n"
COUNT = "q"


@frozen
class Places:
    """Where a point's programs run: the load program, its cgroups, and a directory for files."""

    load: Path
    server: Path
    background: Path
    directory: Path

    @property
    def counts(self) -> Path:
        """The file in which the spinners count their turns."""
        return self.directory / "turns"


class LoadFailed(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised when the load program has ended without a result."""


@frozen
class Reading:
    """What the kernel and the spinners have counted up to one moment."""

    at_s: float
    scheduler: Scheduler
    cpus: Mapping[str, tuple[int, int]]
    agent_s: float
    throttling: Mapping[str, int]
    turns: int

    @classmethod
    def take(cls, places: Places, agent: Agent) -> Self:
        """Read all counts."""
        return cls(
            time.monotonic(),
            scheduler(),
            cpu_times(),
            cpu_stat(agent.cgroup)["usage_usec"] / 1e6,
            cpu_stat(places.server),
            _turns(places.counts),
        )


def measure(places: Places, agent: Agent, server: Server, load: Load, place: Json) -> Json:
    """Run *load* at the level and seed of *place*. Return its record, or raise LoadFailed."""
    level, seed = place["level"], place["seed"]
    with ExitStack() as programs:
        places.counts.unlink(missing_ok=True)
        if load.spinners(level):
            spin = command(places.load, load.mode, load.background(level, places.counts))
            cgroup = places.server if load.in_servers_pod else places.background
            spinning = programs.enter_context(running(cgroup, spin))
            time.sleep(SPINNERS_SETTLE_S)
            if spinning.poll() is not None:
                raise LoadFailed(f"load {load.mode} ended with the exit code {spinning.poll()}")
        serve = command(places.load, "serve", server.arguments(load, level, seed))
        process = programs.enter_context(running(places.server, serve))
        owned = agent.layers()
        _expect(process, BEGIN)
        before = Reading.take(places, agent)
        seen = json.loads(_expect(process))
        after = Reading.take(places, agent)
        layers = agent.layer_of("api")
        own = _both(owned, agent.layers())
    return {**place, **latencies(seen), **of_threads(seen, layers, own), **counted(before, after)}


def _expect(process: "subprocess.Popen[str]", line: str = "") -> str:
    read = process.stdout.readline() if process.stdout else ""
    if not read or (line and read != line):
        raise LoadFailed(f"the load printed {read!r}, exit code {process.poll()}")
    return read


def latencies(seen: Json) -> Json:
    """Return latencies in milliseconds, from the intended arrival."""
    waits = [wait / 1e6 for wait, _ in seen["requests"]]
    services = [service / 1e6 for _, service in seen["requests"]]
    totals = [wait + service for wait, service in zip(waits, services, strict=True)]
    return {
        "requests": len(totals),
        "unanswered": seen["unanswered"],
        "client_late_ms": round(seen["client_late_ns"] / 1e6, 3),
        "total_ms": summary(totals),
        "wait_ms": summary(waits),
        "service_ms": summary(services),
    }


def of_threads(
    seen: Json, layers: Mapping[int, str], owned: Mapping[str, frozenset[int]]
) -> dict[str, Any]:
    """Return what the kernel counted of each kind of thread: server, client, noise and burst.

    *layers* has the layer of each thread, *owned* the CPUs of each layer.
    """
    counted = {}
    for kind in ("server", "client", "noise", "burst"):
        threads = [each for each in seen["threads"] if each["kind"] == kind]
        if threads:
            counted[kind] = _of_kind(threads)
    servers = [each for each in seen["threads"] if each["kind"] == "server"]
    counted["server"]["layers"] = sorted({layers.get(each["tid"], "") for each in servers})
    counted["server"]["outside"] = [
        outside(each["work_by_cpu"], owned.get(layers.get(each["tid"], ""), frozenset()))
        for each in servers
    ]
    return {"threads": counted}


def _of_kind(threads: list[Json]) -> Json:
    run_ns = sum(each["run_ns"] for each in threads)
    delay_ns = sum(each["delay_ns"] for each in threads)
    migrations = [each["migrations"] for each in threads]
    gap_ns = max(each.get("longest_gap_ns", 0) for each in threads)
    return {
        "threads": len(threads),
        "run_ms": round(run_ns / 1e6, 2),
        "delay_ms": round(delay_ns / 1e6, 3),
        "delay_ratio": round(delay_ns / max(1, run_ns), 5),
        "migrations": sum(migrations) if min(migrations) >= 0 else None,
        **({"longest_wait_ms": round(gap_ns / 1e6, 1)} if gap_ns else {}),
    }


def outside(work_by_cpu: Mapping[str, int], own: frozenset[int]) -> float | None:
    """Return the share of a thread's work that it did on others' CPUs, None if it owns none."""
    done = sum(work_by_cpu.values())
    if not own or not done:
        return None
    return round(sum(work for cpu, work in work_by_cpu.items() if int(cpu) not in own) / done, 4)


def counted(before: Reading, after: Reading) -> Json:
    """Return what the machine did between two readings.

    ``scheduler`` is ``engine`` or ``stock`` where that one ran throughout, otherwise ``changed``.
    """
    seconds = after.at_s - before.at_s
    is_same = before.scheduler == after.scheduler
    is_engine = after.scheduler.state == "enabled"
    throttled = {
        key: after.throttling.get(key, 0) - before.throttling.get(key, 0)
        for key in ("nr_throttled", "throttled_usec")
    }
    return {
        "seconds": round(seconds, 2),
        "scheduler": ("engine" if is_engine else "stock") if is_same else "changed",
        "idle": idle_shares(before.cpus, after.cpus),
        "agent_cpu": round((after.agent_s - before.agent_s) / seconds, 4),
        "background_mturns_per_s": round((after.turns - before.turns) / seconds / 1e6, 3),
        "throttled": throttled,
    }


def _turns(counts: Path) -> int:
    if not counts.exists():
        return 0
    return sum(each for (each,) in struct.iter_unpack(COUNT, counts.read_bytes()))


def _both(
    before: Mapping[str, list[int]], after: Mapping[str, list[int]]
) -> dict[str, frozenset[int]]:
    """Return the CPUs that each layer owned at either time: the engine may move them between."""
    names = {*before, *after}
    return {name: frozenset(before.get(name, [])) | {*after.get(name, [])} for name in names}
