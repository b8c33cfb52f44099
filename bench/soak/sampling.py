"""What a process holds at a moment, read from ``/proc`` (proc(5))."""

import os
from contextlib import suppress
from pathlib import Path

from attrs import asdict, frozen

MIB = 1 << 20
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CGROUPS = Path("/sys/fs/cgroup")
INSTANCES = Path("/sys/kernel/tracing/instances")


@frozen
class Sample:
    """One look at a process, at the directory of its state, and at what the kernel has."""

    at_s: float
    rss_mib: float
    descriptors: int
    bpf_descriptors: int
    threads: int
    children: int
    cpu_s: float
    state_kib: float
    cgroups: int
    instances: int
    anonymous_mib: float
    machine_threads: int

    def as_line(self) -> dict[str, float]:
        """Return the sample as a line of the records."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


def sample(
    pid: int, state: Path, at_s: float, cgroups: Path = CGROUPS, instances: Path = INSTANCES
) -> Sample:
    """Look at process *pid*; raise OSError where it has ended.

    *cgroups* is the cgroup v2 tree, *instances* the folder of the instances of tracefs.
    """
    process = Path(f"/proc/{pid}")
    targets = [_target(each) for each in (process / "fd").iterdir()]
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return Sample(
        at_s=at_s,
        rss_mib=int((process / "statm").read_text().split()[1]) * PAGE_BYTES / MIB,
        descriptors=len(targets),
        bpf_descriptors=sum("bpf" in target for target in targets),
        threads=sum(1 for _ in (process / "task").iterdir()),
        children=len((process / f"task/{pid}/children").read_text().split()),
        cpu_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_S,
        state_kib=sum(map(_size, state.rglob("*"))) / 1024,
        cgroups=sum(1 for _ in os.walk(cgroups)),  # passes over those that are removed meanwhile
        instances=sum(1 for _ in instances.iterdir()) if instances.is_dir() else 0,
        anonymous_mib=_status_kib(process, "RssAnon") / 1024,
        machine_threads=int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2]),
    )


def _status_kib(process: Path, name: str) -> int:
    """Return a figure of ``/proc/PID/status`` in KiB."""
    lines = (process / "status").read_text().split("\n")
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _target(descriptor: Path) -> str:
    """Return what a descriptor leads to, empty for one that was closed meanwhile."""
    with suppress(OSError):
        return str(descriptor.readlink())
    return ""


def _size(path: Path) -> int:
    """Return the bytes that a file takes on disk, 0 for one that was removed meanwhile."""
    with suppress(OSError):
        return path.lstat().st_blocks * 512
    return 0
