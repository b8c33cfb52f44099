"""The scheduler events of a trace, as one numpy record type for writers, readers and analysis."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

__all__ = ["PREEMPTED", "SCHED_EVENT", "Kind", "chosen"]

PREEMPTED = 0x100
"""``state`` of a switch whose thread stays runnable (TASK_REPORT_MAX of a kernel 4.14 or newer)."""


class Kind(IntEnum):
    """The meaning of a record. ``prev`` and ``next`` of :data:`SCHED_EVENT` are listed for each."""

    SWITCH = 1
    """``prev`` leaves the CPU with ``state``, ``next`` takes it with ``prio``."""
    WAKING = 2
    """``prev`` wakes ``next``, which is queued on ``target``."""
    MIGRATION = 3
    """``next`` moves to ``target``. ``prev`` is the CPU that it leaves."""
    INTERRUPT_BEGINS = 4
    """The handler of interrupt ``next`` begins."""
    INTERRUPT_ENDS = 5
    """The handler of interrupt ``next`` ends."""
    SOFTIRQ_BEGINS = 6
    """The softirq of vector ``next`` begins."""
    SOFTIRQ_ENDS = 7
    """The softirq of vector ``next`` ends."""


SCHED_EVENT = np.dtype(
    [
        ("ns", "<u8"),
        ("prev", "<u4"),
        ("next", "<u4"),
        ("tgid", "<u4"),
        ("cpu", "<u2"),
        ("target", "<u2"),
        ("state", "<u2"),
        ("prio", "<i2"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("spare", "<u2"),
    ]
)
"""One event, 32 bytes.

Attributes:
    ns: CLOCK_BOOTTIME.
    prev: A thread id, or as ``Kind`` defines it.
    next: A thread id, or as ``Kind`` defines it.
    tgid: Process of ``next``, 0 where it is not known.
    cpu: CPU on which the event happened.
    target: CPU to which ``next`` goes.
    state: State of ``prev`` in a switch as the trace point prints it: ``PREEMPTED``, or bits of
        ``__TASK_*`` below 0x80, or 0x80 for TASK_IDLE.
    prio: Kernel priority of ``next``: below 100 for a real-time thread.
    kind: A ``Kind``.
    flags: Bit 0 of a waking: the waker is an interrupt handler. Bit 0 of a switch: ``prev`` is
        throttled, that is its cgroup has used up its quota.

"""


def chosen(events: npt.NDArray[np.void], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.void]:
    """Return the events where *mask* is true.

    numpy takes forty times as long to index records by a mask as to take them by their places.
    """
    return events.take(np.flatnonzero(mask))
