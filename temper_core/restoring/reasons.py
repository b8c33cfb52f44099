"""The reasons why files stay on a host."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from temper_core.bpf.file_system import MOUNT
from temper_core.records.restored import Leftover

NOT_OURS = "is not Temper's"
MOST_NAMED = 100
"""The largest number of strangers named per directory. The rest are counted."""


def named_strangers(strangers: Sequence[str], directory: Path) -> Iterator[Leftover]:
    """Name the entries of *directory* that Temper has not made."""
    for name in strangers[:MOST_NAMED]:
        yield Leftover(str(directory / name), NOT_OURS)
    if len(strangers) > MOST_NAMED:
        yield Leftover(
            str(directory), f"{len(strangers) - MOST_NAMED} more entries are not Temper's"
        )


def failure(path: str, problem: OSError) -> Leftover:
    """Return the leftover for a failed removal, with the reason and a remedy."""
    return Leftover(path, _remedied(problem), is_failure=True)


def _remedied(error: OSError) -> str:
    remedies = {
        "Read-only file system": f"; mount it writable (a BPF file system: {MOUNT})",
        "Permission denied": "; run as root",
        "Operation not permitted": "; run as root",
    }
    if os.geteuid() == 0:  # even root may not
        remedies["Operation not permitted"] = (
            "; is it immutable? check with lsattr, clear with chattr -i"
        )
    message = error.strerror or str(error)
    return message + remedies.get(message, "")
