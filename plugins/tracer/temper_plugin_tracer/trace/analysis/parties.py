"""Parties that hold a CPU, as numbers: threads, idle time, interrupts, softirqs, the unknown."""

from enum import IntEnum

__all__ = ["IDLE", "SOFTIRQS", "PartyKind", "kind_of", "number_of", "party_code"]


class PartyKind(IntEnum):
    """The kinds of parties that hold a CPU. The values are the upper bits of a party's code."""

    THREAD = 0
    """A thread. Its number is the thread id."""
    INTERRUPT = 1
    """The handler of an interrupt. Its number is the line."""
    SOFTIRQ = 2
    """A softirq. Its number is the vector."""
    UNKNOWN = 3
    """The CPU has had no switch yet, so that its party is unknown."""
    THROTTLED = 4
    """No party: the quota of the waiter's cgroup was used up."""
    OTHERS = 5
    """Parties of small shares, folded to bound the memory."""
    IDLE = 6
    """The CPU was idle. The number is 0."""


SOFTIRQS = (
    "HI",
    "TIMER",
    "NET_TX",
    "NET_RX",
    "BLOCK",
    "IRQ_POLL",
    "TASKLET",
    "SCHED",
    "HRTIMER",
    "RCU",
)
"""Vectors by number (include/linux/interrupt.h)."""
NUMBER_BITS = 32


def party_code(kind: PartyKind, number: int = 0) -> int:
    """Return the code of a party, below 2^36. The code of a thread is its id."""
    return int(kind) << NUMBER_BITS | number


def kind_of(code: int) -> PartyKind:
    """Return the kind of a party."""
    return PartyKind(code >> NUMBER_BITS)


def number_of(code: int) -> int:
    """Return the thread id, interrupt line or softirq vector of a party."""
    return code & ((1 << NUMBER_BITS) - 1)


IDLE = party_code(PartyKind.IDLE)
