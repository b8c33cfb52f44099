"""The lines of instruments in the agent's overhead."""

import re
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import structlog

from temper_core.errors import InputError

MOST_PARTS = 4
"""Parts per instrument. Each is two series, in user space and in the kernel."""
PART = re.compile(r"[a-z][a-z0-9-]{0,31}")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def free_of_charge(_owner: str, _part: str = "") -> AbstractContextManager[None]:
    """Charge nothing, for tests and for agents without an observer."""
    return nullcontext()


class InstrumentCharges:
    """Charges CPU time to ``instrument_NAME`` or ``instrument_NAME_PART``.

    Names and parts have no underscore, so that each line belongs to one instrument. Only the first
    ``MOST_PARTS`` parts of an instrument get lines.
    """

    def __init__(self, part: Callable[[str], AbstractContextManager[None]]) -> None:
        self._part = part
        self._parts: defaultdict[str, set[str]] = defaultdict(set)
        self._lock = threading.Lock()

    def __call__(self, owner: str, part: str = "") -> AbstractContextManager[None]:
        """Charge the calling thread's CPU time inside a ``with`` block to a line of *owner*.

        Raises InputError for an invalid part.
        """
        if part and not PART.fullmatch(part):
            raise InputError(f"{part!r} is not a valid part; it must match {PART.pattern}")
        line = f"instrument_{owner}"
        return self._part(f"{line}_{part}" if part and self._has_line(owner, part) else line)

    def _has_line(self, owner: str, part: str) -> bool:
        parts = self._parts[owner]
        if part in parts:
            return True
        with self._lock:
            if len(parts) < MOST_PARTS:
                parts.add(part)
        if part not in parts:
            log.debug("instrument_part_not_split", instrument=owner, part=part, most=MOST_PARTS)
        return part in parts
