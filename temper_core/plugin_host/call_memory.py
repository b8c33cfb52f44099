"""Measures by how much a call into a plugin grows the process."""

import os
from collections.abc import Callable
from threading import Lock

from attrs import define, field, frozen

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
DEFAULT_BOUND_BYTES = 256 * 1024 * 1024


def private_bytes() -> int:
    """Return the resident memory of this process without pages of files. 0 if it is unknown.

    It is ``resident`` less ``shared`` of proc_pid_statm(5).
    """
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fields = os.read(descriptor, 256).split()
    finally:
        os.close(descriptor)
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES


@frozen
class CallBegun:
    """The state of the process when a call began."""

    number: int
    is_alone: bool
    bytes_before: int


@define(eq=False)
class CallMemory:
    """The growth of the process over each call into a plugin. May be used from any thread.

    The kernel counts memory by process and not by thread. A growth is therefore charged to a call
    only if no call into another plugin ran at any time during it. What the agent's own threads take
    meanwhile is charged as well, so the bound is far above that.
    """

    bound_bytes: int = DEFAULT_BOUND_BYTES
    _measure: Callable[[], int] = private_bytes
    _running: int = field(default=0, init=False)
    _last: int = field(default=0, init=False)
    _account: Lock = field(factory=Lock, init=False)

    def begin(self) -> CallBegun:
        """Note that a call begins."""
        with self._account:
            self._running += 1
            self._last += 1
            number, is_alone = self._last, self._running == 1
        return CallBegun(number, is_alone, self._measure())

    def end(self, begun: CallBegun) -> int:
        """Note that the call has ended. Return its growth in bytes, 0 if it was not alone."""
        bytes_after = self._measure()
        with self._account:
            self._running -= 1
            is_alone = begun.is_alone and self._last == begun.number
        return max(0, bytes_after - begun.bytes_before) if is_alone else 0
