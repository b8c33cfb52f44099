"""The cgroups of this process, also where a cgroup namespace hides their paths.

A container has a private cgroup namespace: ``/proc/self/cgroup`` shows ``/`` there, although the
host's hierarchies are mounted (cgroup_namespaces(7)).
"""

import os
from functools import lru_cache
from pathlib import Path

from temper_core.directory_tree import directories_below
from temper_core.kernel_text import kernel_lines
from temper_core.scheduler.host.roots import Roots, read_line

UNIFIED = ""
"""The name of the cgroup v2 hierarchy. A v1 hierarchy has that of a controller."""
LONGEST_LIST = 1024 * 1024
"""Bytes of a list of processes. The root's holds all kernel threads."""


def own_cgroups(roots: Roots, controller: str = UNIFIED) -> tuple[Path, ...]:
    """Return the directories of this process's cgroup and of those above it, innermost first.

    They are of cgroup v2, or of the v1 hierarchy of *controller*, as mounted below
    ``roots.cgroup``. There are none if that is not mounted.
    """
    top = _top(roots, controller)
    own = _own(top, _shown(roots, controller), os.getpid())
    return tuple(path for path in (own, *own.parents) if path.is_relative_to(top))


def hidden_path(roots: Roots) -> str:
    """Return the cgroup v2 path of this process's cgroup namespace (``a/b``), empty for the host's.

    It is also empty if it cannot be found.
    """
    if _shown(roots, UNIFIED):
        return ""
    found = own_cgroups(roots)[0]
    return "/".join(found.relative_to(_top(roots, UNIFIED)).parts)


def _top(roots: Roots, controller: str) -> Path:
    if controller:
        return roots.cgroup / controller
    hybrid = roots.cgroup / "unified"
    return hybrid if (hybrid / "cgroup.controllers").exists() else roots.cgroup


def _shown(roots: Roots, controller: str) -> str:
    for line in kernel_lines(read_line(roots.proc / "self/cgroup") or ""):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (controller in controllers.split(",")) if controller else number == "0":
            return path.strip("/")
    return ""


@lru_cache(maxsize=16)
def _own(top: Path, shown: str, pid: int) -> Path:
    named = top / shown
    if shown or _holds(named, pid):
        return named
    return next((path for path in map(Path, directories_below(top)) if _holds(path, pid)), named)


def _holds(directory: Path, pid: int) -> bool:
    listed = read_line(directory / "cgroup.procs", LONGEST_LIST) or ""
    return str(pid) in listed.split()
