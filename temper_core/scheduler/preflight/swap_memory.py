"""Whether a second engine fits into memory beside the one that runs."""

from collections.abc import Iterator
from pathlib import Path

from temper_core.kernel_text import kernel_lines
from temper_core.scheduler.host.own_cgroup import own_cgroups
from temper_core.scheduler.host.roots import Roots, read_line, read_number

MIB = 1024 * 1024
LOADING_BYTES = 2 * 192 * MIB
"""scx_layered 1.1.4 holds about 190 MB, and as much again while it loads."""


def why_no_room(roots: Roots) -> str:
    """Return which memory is too small for another engine to load now, empty if none is.

    Values that the kernel does not report do not count.
    """
    need = f"a second engine needs {LOADING_BYTES // MIB} MiB while it loads"
    for folder, free in _rooms(roots):
        if free < LOADING_BYTES:
            return f"{need}; {folder} has {max(0, free) // MIB} MiB left below its limit of memory"
    available = _field(roots.proc / "meminfo", "MemAvailable:")
    if available is not None and available * 1024 < LOADING_BYTES:
        return f"{need}; {available // 1024} MiB are available on this machine"
    return ""


def _rooms(roots: Roots) -> Iterator[tuple[Path, int]]:
    """Yield each limited cgroup around this process and its free bytes, page cache included."""
    for cgroup in own_cgroups(roots):
        limit, used = read_number(cgroup / "memory.max"), read_number(cgroup / "memory.current")
        if limit is not None and used is not None:
            yield cgroup, limit - used + (_field(cgroup / "memory.stat", "inactive_file") or 0)
    for cgroup in own_cgroups(roots, "memory"):
        limit = read_number(cgroup / "memory.limit_in_bytes")
        used = read_number(cgroup / "memory.usage_in_bytes")
        if limit is not None and used is not None:
            spare = _field(cgroup / "memory.stat", "total_inactive_file") or 0
            yield cgroup, limit - used + spare


def _field(path: Path, name: str) -> int | None:
    for line in kernel_lines(read_line(path) or ""):
        words = line.split()
        if len(words) > 1 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return None
