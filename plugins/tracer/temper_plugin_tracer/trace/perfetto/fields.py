"""Field numbers of Perfetto's messages (protos/perfetto/trace of Perfetto v52)."""

from enum import IntEnum

__all__ = [
    "Compact",
    "Event",
    "Packet",
    "Roster",
]

TRACE_PACKET = 1
"""Field of Trace."""
SEQUENCE = 1
"""trusted_packet_sequence_id of all packets of a ``TraceWriter``."""


class Packet(IntEnum):
    """Fields of TracePacket."""

    FTRACE_EVENTS = 1
    PROCESS_TREE = 2
    CHROME_EVENTS = 5
    CLOCK_SNAPSHOT = 6
    TIMESTAMP = 8
    SEQUENCE_ID = 10
    TRACK_EVENT = 11
    FTRACE_STATS = 34
    SYSTEM_INFO = 45
    COMPRESSED_PACKETS = 50
    TRACK_DESCRIPTOR = 60
    TEMPER_MACHINE = 30_901
    """JSON of a ``TracedMachine``. Perfetto skips fields that it does not know."""
    TEMPER_THREADS = 30_902
    """A message of fields ``Roster``."""
    TEMPER_FACTS = 30_903
    """JSON of ``CaptureFacts``."""


class Compact(IntEnum):
    """Fields of CompactSched. Timestamps are differences in ns."""

    SWITCH_NS = 1
    SWITCH_STATE = 2
    SWITCH_NEXT = 3
    SWITCH_PRIO = 4
    NAMES = 5
    SWITCH_NAME = 6
    WAKING_NS = 7
    WAKING_TID = 8
    WAKING_TARGET = 9
    WAKING_PRIO = 10
    WAKING_NAME = 11
    WAKING_FLAGS = 12
    TEMPER_SWITCH_PREV = 901
    """Differences of places in the switches, for which Perfetto would infer another thread."""
    TEMPER_SWITCH_PREV_TID = 902
    TEMPER_WAKER = 903
    TEMPER_WAKER_TID = 904
    TEMPER_SWITCH_TGID = 905
    """Differences of places in the switches whose process is not that of the roster."""
    TEMPER_SWITCH_TGID_VALUE = 906
    TEMPER_WAKING_TGID = 907
    TEMPER_WAKING_TGID_VALUE = 908
    TEMPER_THROTTLED = 909
    """Differences of places in the switches whose thread before was throttled."""


class Event(IntEnum):
    """Fields of FtraceEvent."""

    TIMESTAMP = 1
    PID = 2
    SCHED_SWITCH = 4
    COMMON_FLAGS = 5
    SCHED_WAKEUP = 17
    SCHED_WAKING = 20
    SOFTIRQ_ENTRY = 24
    SOFTIRQ_EXIT = 25
    IRQ_ENTRY = 36
    IRQ_EXIT = 37
    SCHED_WAKEUP_NEW = 114
    SCHED_MIGRATE_TASK = 491
    TEMPER_TGID = 30_901


class Roster(IntEnum):
    """Fields of the message ``Packet.TEMPER_THREADS``: columns, and texts that they point to.

    Without a column all its values are 0.
    """

    TEXTS = 1
    TID = 2
    """The first thread id, and the difference of each other one from that before."""
    ABOVE_TGID = 3
    """The thread id less that of the process."""
    NAME = 4
    PROCESS = 5
    POD = 6
    GROUP = 7
    TIER = 8
    LAYER = 9
    IS_SELECTED = 10
    """1 for a thread of the selection, of which every event is in the trace."""


HARD_INTERRUPT, SOFT_INTERRUPT = 0x08, 0x10
"""Bits of common_flags: TRACE_FLAG_HARDIRQ and TRACE_FLAG_SOFTIRQ of linux/trace_events.h."""
