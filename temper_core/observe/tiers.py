"""Selects the best tier of observation that works here, and explains why no better one does."""

from collections.abc import Callable, Mapping

from attrs import frozen

from temper_core.bpf.access import explain_bpf_error
from temper_core.errors import BpfError, MachineError
from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.kernel_side.kernel_threads import BpfThreads, IterThreads
from temper_core.observe.thread_rows import ThreadReader
from temper_core.observe.threads import ProcThreads

AUTO = "auto"

Opener = Callable[[], ThreadReader]


@frozen
class OpenedReader:
    """A reader of threads. ``reason`` explains why no better tier works, empty for the best."""

    reader: ThreadReader
    reason: str = ""


def open_reader(
    tier: str = AUTO,
    *,
    proc_root: str = "/proc",
    budget: DescriptorBudget | None = None,
    detail_threads: int = 256,
    unified_root: str = "/sys/fs/cgroup",
    least_ratio: float = 0.0,
) -> OpenedReader:
    """Open the best tier that works, or the one named *tier*.

    About *detail_threads* threads get a row of their own. In a tier that can sum up the others, a
    thread must have run or waited for *least_ratio* of the time between two looks to get one.
    *unified_root* is the mount point of cgroup v2, "" for none. Raises MachineError if the named
    tier cannot work here.
    """
    openers: dict[str, Opener] = {
        "bpf": lambda: BpfThreads.open(detail_threads, unified_root, least_ratio),
        "bpf-iter": lambda: IterThreads.open(detail_threads, unified_root, least_ratio),
        "proc": lambda: ProcThreads(proc_root, budget),
    }
    return first_that_works(tier, openers)


def first_that_works(
    tier: str, openers: Mapping[str, Opener], *, proc_root: str = "/proc", sys_root: str = "/sys"
) -> OpenedReader:
    """Try *openers*, by the names of their tiers and best first, or only that of *tier*.

    The reasons for a refused tier come from the process and kernel information in *proc_root* and
    *sys_root*. Raises MachineError if none works.
    """
    refused: dict[str, str] = {}
    for name in openers if tier == AUTO else (tier,):
        try:
            return OpenedReader(openers[name](), _said(refused))
        except BpfError as error:
            access = explain_bpf_error(error, proc_root, sys_root)
            refused[name] = f"{access.reason}; {access.remedy}" if access.remedy else access.reason
    raise MachineError(f"observe.tier {tier!r} cannot be used here: {'; '.join(refused.values())}")


def _said(refused: Mapping[str, str]) -> str:
    """Return why tiers were refused. Tiers with the same reason are listed together."""
    tiers: dict[str, list[str]] = {}
    for name, why in refused.items():
        tiers.setdefault(why, []).append(name)
    return "; ".join(f"{' and '.join(names)}: {why}" for why, names in tiers.items())
