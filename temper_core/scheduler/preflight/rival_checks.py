"""A check for other software on the node that sets the affinity or priority of threads.

It only warns: the engine runs beside any of these programs, but each overrides some of its
decisions.
"""

from collections.abc import Iterator

from temper_core.records.checks import Check, ok, warning
from temper_core.scheduler.host.roots import Roots, read_line

# The kernel cuts the name of a process to 15 bytes (TASK_COMM_LEN, linux/sched.h).
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
    "stop it on this node, or configure it to leave CPUs alone (irqbalance: ban the fenced cores; "
    "TuneD: a profile without [scheduler])"
)


def conflicting_software(roots: Roots) -> Check:
    """Warn of other software that decides on which CPUs threads run."""
    name = "conflicting_software"
    rivals = sorted(set(_found(roots)))
    if not rivals:
        return ok(name, "no other software is known to move threads between CPUs here")
    detail = "; ".join(f"{RIVALS[comm][0]} runs (process {pid}): {RIVALS[comm][1]}"
                       for comm, pid in rivals)  # fmt: skip
    return warning(name, detail, REMEDY)


def _found(roots: Roots) -> Iterator[tuple[str, int]]:
    """Yield the name and the lowest process id of each rival that runs."""
    pids: dict[str, int] = {}
    for folder in roots.proc.glob("[0-9]*"):
        comm = read_line(folder / "comm", limit=64) or ""
        if comm in RIVALS:
            pid = int(folder.name)
            pids[comm] = min(pid, pids.get(comm, pid))
    yield from pids.items()
