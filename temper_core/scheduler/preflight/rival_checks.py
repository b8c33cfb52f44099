"""A check for software on the node that moves threads between CPUs, or changes their priority, too.

It only warns: the engine runs beside any of these, and each of them spoils a part of what it does.
"""

from collections.abc import Iterator

from temper_core.scheduler.host.roots import Roots, read_line
from temper_core.scheduler.preflight.checks import Check, ok, warning

# What the kernel calls a process is cut to 15 bytes (TASK_COMM_LEN, linux/sched.h).
RIVALS = {
    "koordlet": ("Koordinator", "it writes cpusets, quotas and cpu.idle of the same pods"),
    "katalyst-agent": ("Katalyst", "it assigns cpusets to the same pods"),
    "craned": ("Crane", "it changes quotas and cpusets of the same pods"),
    "nri-resource-po": ("an NRI resource policy", "it pins containers, and pins outlive it"),
    "cri-resmgr": ("CRI resource manager", "it pins containers, and pins outlive it"),
    "tuned": ("TuneD", "its scheduler plugin sets affinities and policies by command line"),
    "irqbalance": ("irqbalance", "it moves interrupts onto fenced cores"),
    "ananicy": ("Ananicy", "it changes nice values and policies by name"),
    "ananicy-cpp": ("Ananicy", "it changes nice values and policies by name"),
    "uresourced": ("uresourced", "it changes cpu.weight and cpusets of sessions"),
}
REMEDY = (
    "stop it on this node, or tell it to leave CPUs alone (irqbalance: ban the fenced cores; "
    "TuneD: a profile without [scheduler])"
)


def conflicting_software(roots: Roots) -> Check:
    """Warn of other software that decides where threads run."""
    name = "conflicting_software"
    found = sorted(set(_found(roots)))
    if not found:
        return ok(name, "nothing else is known to move threads between CPUs here")
    told = "; ".join(f"{RIVALS[comm][0]} runs (process {pid}): {RIVALS[comm][1]}"
                     for comm, pid in found)  # fmt: skip
    return warning(name, told, REMEDY)


def _found(roots: Roots) -> Iterator[tuple[str, int]]:
    """Yield what runs, each program once, by its first process."""
    pids: dict[str, int] = {}
    for folder in roots.proc.glob("[0-9]*"):
        comm = read_line(folder / "comm", limit=64) or ""
        if comm in RIVALS:
            pid = int(folder.name)
            pids[comm] = min(pid, pids.get(comm, pid))
    yield from pids.items()
