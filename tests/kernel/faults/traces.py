"""What can be left behind: files, mounts, cgroups, processes, BPF programs and maps."""

import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import bpf_objects

OWN = Path("/run/faults")
CGROUPS = Path("/sys/fs/cgroup")
PLACES = tuple(
    map(Path, ("/run", "/tmp", "/dev/shm", "/etc/temper", "/var/lib/temper", "/sys/fs/bpf"))
)
KEPT = {
    "/var/lib/temper/events.jsonl",
    "/var/lib/temper/instruments/rightsizer/demand.sqlite",
}
"""Files that outlive an agent on purpose: the record of events, and the history of demand."""
# BPF objects and dying cgroups go a moment after their last user.
SETTLES_S = 15.0
KTHREADD = 2


def traces(known: Collection[int] = ()) -> Counter[str]:
    """Count everything there is now; processes *known* by their ids, and this one, left out.

    Numbers are taken out of names, so that one engine's file is as good as the next one's.
    """
    found = [*_files(), *_cgroups(), *_mounts(), *_processes({*known, os.getpid()})]
    return Counter(re.sub(r"\d+", "N", name) for name in [*found, *bpf_objects.names()])


def leftovers(before: Counter[str], known: Collection[int] = ()) -> list[str]:
    """Return what there is more of than *before*, once it has had its time to go."""
    latest = time.monotonic() + SETTLES_S
    while (left := traces(known) - before) and time.monotonic() < latest:
        time.sleep(0.3)
    return sorted(left.elements())


def _files() -> Iterator[str]:
    for place in PLACES:
        for path in place.rglob("*"):
            if not path.is_dir() and OWN not in path.parents:
                yield str(path)


def _cgroups() -> Iterator[str]:
    yield from (f"cgroup {path}" for path in CGROUPS.rglob("*") if path.is_dir())


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        yield f"mount {' '.join(line.split()[:3])}"


def _processes(known: Collection[int]) -> Iterator[str]:
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) in known:
            continue
        with suppress(OSError):  # it has ended meanwhile
            name, _, rest = (folder / "stat").read_text().rpartition(") ")
            state, parent = rest.split()[:2]
            is_kernels = int(parent) == KTHREADD or int(folder.name) == KTHREADD
            if not is_kernels and state not in "ZX":
                yield f"process {name.partition(' (')[2]}"
