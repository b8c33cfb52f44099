"""What /proc and the cgroup files say, read without any of the code that is held against it."""

import os
import time
from collections import Counter
from pathlib import Path

from attrs import field, frozen

from tests.core.observe.kernel_side.proc_reads import Counts, counts_of, stat_of

RESOURCES = ("cpu", "io", "memory")
POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""By the numbers of linux/sched.h."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@frozen
class Thread:
    """One thread: what it counts since its birth, and what is true of it at the moment."""

    counts: Counts
    facts: dict[str, object]
    started_s: float
    is_runnable: bool


@frozen
class Place:
    """A cgroup, or the node: what it counts, what it stands at, and what it is set to."""

    counters: dict[str, int] = field(factory=dict)
    gauges: dict[str, float] = field(factory=dict)
    facts: dict[str, object] = field(factory=dict)


@frozen
class Look:
    """All of it, read between two moments: of the wall clock, and of the clock since boot."""

    began: float
    ended: float
    boot_began: float
    boot_ended: float
    threads: dict[int, Thread]
    pods: dict[str, Place]
    members: dict[str, frozenset[int]]
    node: Place


@frozen
class Looker:
    """Looks at the cgroups of pods, which are given by the pods' keys, below *unified*."""

    unified: Path
    pods: dict[str, Path]

    def look(self):
        began, boot_began = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
        members = {key: frozenset(_members(folder)) for key, folder in self.pods.items()}
        found = {tid: _thread(tid) for tids in members.values() for tid in tids}
        return Look(
            threads={tid: thread for tid, thread in found.items() if thread},
            pods={key: _cgroup(folder, len(members[key])) for key, folder in self.pods.items()},
            members=members,
            node=_node(),
            began=began,
            boot_began=boot_began,
            ended=time.time(),
            boot_ended=time.clock_gettime(time.CLOCK_BOOTTIME),
        )

    def gauges(self):
        """Read only what the places stand at, the node's under an empty key; quickly."""
        pods = {key: _pressures(_pressure_of(folder)) for key, folder in self.pods.items()}
        return {"": _pressures(_pressure_of_node()), **pods}


def parse_pressure(text):
    """Return averages and totals of a PSI file, by names such as ``some.avg10``."""
    found = {}
    for line in text.splitlines():
        kind, *pairs = line.split()
        for pair in pairs:
            name, _, value = pair.partition("=")
            found[f"{kind}.{name}"] = float(value) if name == "total" else float(value) / 100
    return found


def _members(folder):
    for file in folder.rglob("cgroup.threads"):
        yield from map(int, file.read_text().split())
    yield from map(int, (folder / "cgroup.threads").read_text().split())


def _thread(tid):
    """Read one thread; None if it has ended meanwhile."""
    try:
        fields, status = stat_of(tid), _keyed(f"/proc/{tid}/status")
        facts, started_s = _facts(tid, fields, status), int(fields[19]) / TICKS_PER_S
        return Thread(counts_of(tid), facts, started_s, is_runnable=fields[0] == "R")
    except OSError:
        return None


def _facts(tid, fields, status):
    lines = Path(f"/proc/{tid}/cgroup").read_text().splitlines()
    [path] = (line.removeprefix("0::/") for line in lines if line.startswith("0::"))
    cpus = sorted(_cpus(status["Cpus_allowed_list"]))
    return {
        "tgid": int(status["Tgid"]),
        "comm": status["Name"],
        "process": Path(f"/proc/{status['Tgid']}/comm").read_text().rstrip("\n"),
        "cgroup": f"{path}/",
        "cpu": int(fields[36]),
        "policy": POLICIES[int(fields[38])],
        "nice": int(fields[16]),
        "rt_priority": int(fields[37]),
        "affinity": cpus if len(cpus) < os.cpu_count() else [],
    }


def _keyed(path):
    """Read lines of ``Key: value``."""
    lines = (line.partition(":") for line in Path(path).read_text().splitlines())
    return {key: value.strip() for key, _, value in lines}


def _cpus(text):
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _cgroup(folder, threads):
    stat = dict(line.split() for line in _text(folder / "cpu.stat").splitlines())
    gauges = {"threads": float(threads), **_pressures(_pressure_of(folder))}
    if memory := _text(folder / "memory.current"):
        gauges["memory_bytes"] = float(memory)
    return Place({key: int(value) for key, value in stat.items()}, gauges, _limits(folder))


def _limits(folder):
    """Return what a cgroup asks for, as far as it can ask."""
    found = {}
    if quota := _text(folder / "cpu.max"):
        time_us, period_us = quota.split()
        found["quota_cores"] = None if time_us == "max" else int(time_us) / int(period_us)
    if weight := _text(folder / "cpu.weight"):
        found["weight"] = None if int(weight) == 100 else int(weight)
    if cpuset := _text(folder / "cpuset.cpus.effective"):
        cpus = sorted(_cpus(cpuset))
        found["cpuset"] = cpus if len(cpus) < os.cpu_count() else []
    return found


def _node():
    threads = sum(1 for _ in Path("/proc").glob("[0-9]*/task/*"))
    return Place(gauges={"threads_seen": float(threads), **_pressures(_pressure_of_node())})


def _pressure_of(folder):
    return {name: _text(folder / f"{name}.pressure") for name in RESOURCES}


def _pressure_of_node():
    return {name: _text(Path(f"/proc/pressure/{name}")) for name in RESOURCES}


def _pressures(files):
    return {
        f"{resource}.{name}": value
        for resource, text in files.items()
        for name, value in parse_pressure(text).items()
    }


def _text(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def added(earlier, later):
    """Return what threads have counted between two reads of them, all together; none is negative.

    Those that were not there have begun at zero, and those that are gone are not counted.
    """
    sums = Counter()
    nothing = Counts(0, 0, 0, 0, 0, 0)
    for tid, thread in later.items():
        before = earlier[tid].counts if tid in earlier else nothing
        for name, now, then in zip(Counts._fields, thread.counts, before, strict=True):
            sums[name] += max(0, now - then)
    return sums
