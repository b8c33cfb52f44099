"""Processes that the kernel has killed because memory ran out."""

from contextlib import suppress
from pathlib import Path

COUNT = b"oom_kill"


def memory_kills(proc: Path) -> int | None:
    """Return how many processes of all cgroups since the boot. None if the kernel does not say."""
    with suppress(OSError, ValueError):
        for line in (proc / "vmstat").read_bytes().split(b"\n"):
            name, _, count = line.partition(b" ")
            if name == COUNT:
                return int(count)
    return None


def killer_in_words(before: int | None, after: int | None) -> str:
    """Return who may have sent SIGKILL, by the counts before and after it."""
    # Both kinds of running out count: that of the machine and that of a cgroup (mm/oom_kill.c).
    if before is not None and before == after:
        return "sent by another process: the kernel has killed none for memory meanwhile"
    return "sent by another process, or by the kernel as memory ran out"
