"""A bound on the memory of this process, so that a hostile file does not take the machine's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self

from attrs import frozen

from temper_core.errors import InputError

MIB = 1024 * 1024
MOST_BYTES = 4096 * MIB


@frozen
class MemoryBound:
    """A bound that holds within a ``with`` block of it."""

    reason: str
    most: int
    before: tuple[int, int]
    limit: Callable[[tuple[int, int]], None]

    def __enter__(self) -> Self:
        self.limit((self.most, self.before[1]))
        return self

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Within the block, start programs that do not inherit the bound."""
        self.limit(self.before)
        try:
            yield
        finally:
            self.limit((self.most, self.before[1]))

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        # First of all, since a message takes memory.
        self.limit(self.before)
        if isinstance(error, MemoryError):
            raise InputError(f"{self.reason} more than {self.most // MIB} MiB of memory") from error


def bounded_memory(reason: str, meminfo: Path = Path("/proc/meminfo")) -> MemoryBound:
    """Raise InputError where the block takes more than 4 GiB, or half of the available memory.

    Half of the limit of this process's cgroup is a bound, too: in the agent's container the agent
    and the engine have the same limit. The bound holds for this process (RLIMIT_DATA of
    setrlimit(2)). *reason* begins the message.
    """
    import resource  # noqa: PLC0415 - not on every system, and every command imports this module

    before = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [bound for bound in before if bound != resource.RLIM_INFINITY]
    halves = [size // 2 for size in (_available(meminfo), _limit_of_cgroup()) if size is not None]
    return MemoryBound(
        reason,
        min((MOST_BYTES, *limits, *halves)),
        before,
        partial(resource.setrlimit, resource.RLIMIT_DATA),
    )


def _available(meminfo: Path) -> int | None:
    """Return MemAvailable (proc_meminfo(5)) in bytes, None if it is unknown."""
    try:
        lines = meminfo.read_text().split("\n")
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def _limit_of_cgroup() -> int | None:
    """Return this process's limit in bytes, None without one."""
    from temper_core.scheduler.host.roots import Roots  # noqa: PLC0415 - slow, and rarely needed
    from temper_core.scheduler.preflight.node_checks import memory_limit  # noqa: PLC0415 - as above

    return memory_limit(Roots())
