"""The cgroup of this process, also where a cgroup namespace hides its path.

A container has a private cgroup namespace: ``/proc/self/cgroup`` shows ``/`` there, although the
host's hierarchy is mounted (cgroup_namespaces(7)).
"""

import os
from functools import lru_cache
from pathlib import Path

from temper_core.directory_tree import directories_below
from temper_core.scheduler.host.roots import Roots, read_line

LONGEST_LIST = 1024 * 1024
"""Bytes of a list of processes. The root's holds all kernel threads."""


def cgroups_of_this_process(roots: Roots) -> tuple[Path, ...]:
    """Return the directories of this process's cgroup and of those above it, innermost first.

    They are of the hierarchy that is mounted at ``roots.cgroup``.
    """
    own = _own(roots, os.getpid())
    return tuple(path for path in (own, *own.parents) if path.is_relative_to(roots.cgroup))


@lru_cache(maxsize=8)
def _own(roots: Roots, pid: int) -> Path:
    lines = (read_line(roots.proc / "self/cgroup") or "").splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    named = roots.cgroup / path.strip("/")
    if path.strip("/") or _holds(named, pid):
        return named
    searched = map(Path, directories_below(roots.cgroup))
    return next((found for found in searched if _holds(found, pid)), named)


def _holds(directory: Path, pid: int) -> bool:
    listed = read_line(directory / "cgroup.procs", LONGEST_LIST) or ""
    return str(pid) in listed.split()
