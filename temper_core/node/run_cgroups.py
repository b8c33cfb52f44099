"""Cgroups of ``temper run``: whether they hold a process, and the sizes noted on them.

Facts: ``Documentation/admin-guide/cgroup-v2.rst`` (``cgroup.events``). Since Linux 5.7 cgroup
directories take extended attributes of the ``user.`` family.
"""

import os
from pathlib import Path

from temper_core.node.pod_size import CpuSize

REQUEST_NOTE = "user.temper.cpu_request_millis"
LIMIT_NOTE = "user.temper.cpu_limit_millis"
LONGEST_NOTE = 18


def is_populated(cgroup: Path) -> bool:
    """Whether *cgroup* or a descendant holds a process. True if the kernel does not report it."""
    try:
        lines = (cgroup / "cgroup.events").read_text(encoding="ascii").split("\n")
    except FileNotFoundError:
        # Either this is cgroup v1, or the cgroup has gone and holds no process.
        return cgroup.is_dir()
    except OSError:
        return False
    return "populated 0" not in lines


def note(cgroup: Path, name: str, millis: int) -> bool:
    """Note a size in millicores on *cgroup*. Return whether kernel and permissions allow it."""
    try:
        os.setxattr(cgroup, name, str(millis).encode())
    except OSError:
        return False
    return True


def noted_size(cgroup: Path, otherwise: CpuSize) -> CpuSize:
    """Return the size noted on *cgroup*. A part without a note is taken from *otherwise*."""
    request, limit = _noted(cgroup, REQUEST_NOTE), _noted(cgroup, LIMIT_NOTE)
    return CpuSize(
        otherwise.request if request is None else request,
        otherwise.limit if limit is None else limit,
    )


def _noted(cgroup: Path, name: str) -> int | None:
    try:
        value = os.getxattr(cgroup, name)
    except OSError:
        return None
    return int(value) if value.isdigit() and len(value) <= LONGEST_NOTE else None
