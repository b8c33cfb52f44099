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
    """The number of a call, and the bytes of the process when it began."""

    number: int
    bytes_before: int


@define(eq=False)
class CallMemory:
    """The growth of the process over each call into a plugin. May be used from any thread.

    The kernel counts memory by process and not by thread. A growth is therefore charged to a call
    only for the time in which no call into another plugin ran, and never more than the process has
    grown over the whole call. Memory that the agent's own threads take meanwhile is charged as
    well, so the bound is far above that.
    """

    bound_bytes: int = DEFAULT_BOUND_BYTES
    _measure: Callable[[], int] = private_bytes
    _charged: dict[int, int] = field(factory=dict, init=False)
    """The bytes that each running call has taken while it was the only one."""
    _measured: int = field(default=0, init=False)
    """The bytes of the process when a call last began or ended."""
    _last: int = field(default=0, init=False)
    _account: Lock = field(factory=Lock, init=False)

    def begin(self) -> CallBegun:
        """Note that a call begins."""
        with self._account:
            self._charge()
            self._last += 1
            self._charged[self._last] = 0
            return CallBegun(self._last, self._measured)

    def end(self, begun: CallBegun) -> int:
        """Note that the call has ended. Return the bytes that it has grown the process by."""
        with self._account:
            self._charge()
            charged = self._charged.pop(begun.number)
            return max(0, min(charged, self._measured - begun.bytes_before))

    def _charge(self) -> None:
        """Charge what was taken since the last look, if a single call ran."""
        measured = self._measure()
        if len(self._charged) == 1:
            (number,) = self._charged
            self._charged[number] += measured - self._measured
        self._measured = measured
