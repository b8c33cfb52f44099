"""A thread's policy and reset-on-fork flag, by sched_getattr(2) and sched_setattr(2).

systemd's ``RestrictRealtime=`` refuses the flag by sched_setscheduler(2), which Python has.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Mapping

from attrs import field, frozen

NUMBERS: Mapping[str, tuple[int, int]] = {"x86_64": (314, 315), "aarch64": (274, 275)}
"""The numbers of sched_setattr and sched_getattr in Linux' tables of system calls."""
ORDINARY = 0
"""SCHED_NORMAL, the policy of threads that set none (include/uapi/linux/sched.h)."""
_RESET_ON_FORK = 1
_ATTRIBUTES = struct.Struct("<IIQiIQQQ")
"""``struct sched_attr`` in its first size (include/uapi/linux/sched/types.h)."""

_library = ctypes.CDLL(None, use_errno=True)
_numbers = NUMBERS.get(platform.machine())


@frozen
class Scheduling:
    """A thread's policy, nice value and flag. ``attributes`` are all that the kernel reports."""

    policy: int
    nice: int
    resets_on_fork: bool
    attributes: tuple[int, ...] = field(repr=False)

    @property
    def is_untouched(self) -> bool:
        """Whether the program has set none of them."""
        return self.policy == ORDINARY and self.nice == 0 and not self.resets_on_fork


def scheduling_of(tid: int) -> Scheduling:
    """Return how thread *tid* is scheduled. Raises OSError."""
    block = ctypes.create_string_buffer(_ATTRIBUTES.size)
    _call(_system_calls()[1], tid, block, _ATTRIBUTES.size, 0)
    attributes = _ATTRIBUTES.unpack(block.raw)
    _, policy, flags, nice, *_ = attributes
    return Scheduling(policy, nice, bool(flags & _RESET_ON_FORK), attributes)


def set_reset_on_fork(tid: int, *, is_set: bool) -> None:
    """Set or clear the flag of thread *tid*. Raises OSError.

    With the flag a child of a thread with a negative nice value starts at 0 (sched(7)). All other
    attributes are written back as they were read.
    """
    _, policy, flags, *rest = scheduling_of(tid).attributes
    flags = flags | _RESET_ON_FORK if is_set else flags & ~_RESET_ON_FORK
    block = ctypes.create_string_buffer(_ATTRIBUTES.pack(_ATTRIBUTES.size, policy, flags, *rest))
    _call(_system_calls()[0], tid, block, 0)


def _system_calls() -> tuple[int, int]:
    if _numbers is None:
        raise OSError(f"the numbers of the system calls are not known for {platform.machine()}")
    return _numbers


def _call(number: int, *arguments: object) -> None:
    if _library.syscall(ctypes.c_long(number), *arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
