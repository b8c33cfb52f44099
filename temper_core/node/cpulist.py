"""The kernel's text format of CPU sets: ``0-3,8``."""

import re
from collections.abc import Iterable
from itertools import pairwise

from temper_core.errors import InputError

# The largest NR_CPUS that any architecture can be built with.
CPU_LIMIT = 8192
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def parse_cpulist(text: str) -> tuple[int, ...]:
    """Return the CPUs of *text*, ascending. Raise InputError for a malformed list."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        matched = _RANGE.fullmatch(part.strip())
        if matched is None:
            raise InputError(f"{part.strip()[:40]!r} is no list of CPUs such as '0-3,8'")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        if last < first or last >= CPU_LIMIT:
            raise InputError(f"{part.strip()!r} is no range of CPUs below {CPU_LIMIT}")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def format_cpulist(cpus: Iterable[int]) -> str:
    """Return *cpus* in the kernel's format, an empty string for no CPUs."""
    ordered = sorted(set(cpus))
    if not ordered:
        return ""
    breaks = [(low, high) for low, high in pairwise(ordered) if high != low + 1]
    starts = [ordered[0], *(high for _, high in breaks)]
    ends = [*(low for low, _ in breaks), ordered[-1]]
    return ",".join(
        str(start) if start == end else f"{start}-{end}"
        for start, end in zip(starts, ends, strict=True)
    )
