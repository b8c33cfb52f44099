"""What is said with the kernel side of wakes, byte by byte: ``wakes.h`` has the same layouts."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

BUCKETS = 24
REST = 0
"""The tid under which waits are counted of threads that found no room."""

CONTROL_BYTES = 40
LIMITS = struct.Struct("<QQ")
"""Length of the window and of a wait that is told with who ran meanwhile, in ns."""
STATE = struct.Struct("<IIQII")
STATE_AT = 16
OPEN = struct.Struct("<I")

TURNS_BYTES = 8 + 8 * 16
"""The turns of a CPU are for the kernel side alone."""
TALLY = struct.Struct(f"<QQQQQQQ{TURNS_BYTES}x")

TID = struct.Struct("<I")
PAIR = struct.Struct("<II")
"""Waker and wakee, or waiter and runner."""
COUNT = struct.Struct("<Q")
WAITS = struct.Struct("<QQ8x")
_COUNTS_BYTES = 4 * BUCKETS
PARTY = struct.Struct(f"<QIII4x16s16sQ8x{_COUNTS_BYTES}s")
COUNTS = struct.Struct(f"<{BUCKETS}I")


class State(NamedTuple):
    """What the kernel side says of the last window, by a clock of its own."""

    is_open: int
    is_over: int
    began: int
    knows_waits: int
    knows_interrupts: int


class CpuCounts(NamedTuple):
    """What was counted on one CPU. Times in ns.

    ``passed`` are events outside of the window, ``timed`` those whose cost was measured, ``lost``
    edges and ``nameless`` threads that found no room.
    """

    switches: int
    wakes: int
    passed: int
    timed: int
    timed_ns: int
    lost: int
    nameless: int


class PartyRecord(NamedTuple):
    """A thread as it was when it was first seen in the window, and its waits.

    ``flags`` are ``task_struct``'s, ``uid`` is the effective one. ``counts`` is packed, 32 bits
    for each bucket.
    """

    cgroup: int
    tgid: int
    flags: int
    uid: int
    comm: bytes
    process: bytes
    waited_ns: int
    counts: bytes


class Parties(Mapping[int, PartyRecord]):
    """Threads by their tid, kept as the kernel packs them, at a third of what records take.

    Thousands come with one window, and most of them are looked at once. *packed* is keys and
    values, in the batches in which a map is emptied. A tid comes once.
    """

    def __init__(self, packed: Iterable[tuple[bytes, bytes]]) -> None:
        self._values = bytearray()
        self._places: dict[int, int] = {}
        for keys, values in packed:
            at = len(self._values)
            self._values += values
            for place, (tid,) in enumerate(TID.iter_unpack(keys)):
                self._places[tid] = at + place * PARTY.size

    def __getitem__(self, tid: int) -> PartyRecord:
        """Return a thread's record. Raises KeyError for one that is not known."""
        return PartyRecord._make(PARTY.unpack_from(self._values, self._places[tid]))

    def __iter__(self) -> Iterator[int]:
        """Yield the tids."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many threads there are."""
        return len(self._places)
