"""A bound on the memory of this process, so that a hostile file does not take the machine's."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from temper_core import InputError

MIB = 1024 * 1024
MOST_BYTES = 4096 * MIB
UNLIMITED = resource.RLIM_INFINITY


@contextmanager
def bounded_memory(reason: str, meminfo: Path = Path("/proc/meminfo")) -> Iterator[None]:
    """Raise InputError where the block takes more than 4 GiB, or half of the available memory.

    The bound holds for this process (RLIMIT_DATA of setrlimit(2)). *reason* begins the message.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = [MOST_BYTES, _half_of_available(meminfo), soft, hard]
    most = min(bound for bound in bounds if bound != UNLIMITED)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    except MemoryError as error:
        raise InputError(f"{reason} more than {most // MIB} MiB of memory") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _half_of_available(meminfo: Path) -> int:
    """Return half of MemAvailable (proc_meminfo(5)) in bytes, UNLIMITED where it is unknown."""
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return UNLIMITED
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 // 2 if found else UNLIMITED
