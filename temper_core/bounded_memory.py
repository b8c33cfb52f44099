"""A bound on the memory of this process, so that a hostile file does not take the machine's."""

import resource
from contextlib import AbstractContextManager
from pathlib import Path

from attrs import define, field

from temper_core.errors import InputError

MIB = 1024 * 1024
MOST_BYTES = 4096 * MIB
UNLIMITED = resource.RLIM_INFINITY


@define
class _MemoryBound:
    reason: str
    most: int
    _before: tuple[int, int] = field(init=False, default=(UNLIMITED, UNLIMITED))

    def __enter__(self) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (self.most, self._before[1]))

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        # First of all, since a message takes memory.
        resource.setrlimit(resource.RLIMIT_DATA, self._before)
        if isinstance(error, MemoryError):
            raise InputError(f"{self.reason} more than {self.most // MIB} MiB of memory") from error


def bounded_memory(
    reason: str, meminfo: Path = Path("/proc/meminfo")
) -> AbstractContextManager[None]:
    """Raise InputError where the block takes more than 4 GiB, or half of the available memory.

    Half of the limit of this process's cgroup is a bound, too: in the agent's container the agent
    and the engine have the same limit. The bound holds for this process (RLIMIT_DATA of
    setrlimit(2)). *reason* begins the message.
    """
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = [MOST_BYTES, _half_of_available(meminfo), _half_of_limit(), *limits]
    return _MemoryBound(reason, min(bound for bound in bounds if bound != UNLIMITED))


def _half_of_available(meminfo: Path) -> int:
    """Return half of MemAvailable (proc_meminfo(5)) in bytes, UNLIMITED where it is unknown."""
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return UNLIMITED
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 // 2 if found else UNLIMITED


def _half_of_limit() -> int:
    """Return half of this process's limit in bytes, UNLIMITED without one."""
    from temper_core.scheduler.host.roots import Roots  # noqa: PLC0415 - slow, and rarely needed
    from temper_core.scheduler.preflight.node_checks import memory_limit  # noqa: PLC0415 - as above

    limit = memory_limit(Roots())
    return UNLIMITED if limit is None else limit // 2
