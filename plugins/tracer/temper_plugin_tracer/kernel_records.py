"""The byte layouts shared with the BPF object. ``wakes.h`` declares the same ones."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

BUCKETS = 24
REST = 0
"""The tid that collects the waits of threads beyond the capacity."""

CONTROL_BYTES = 40
LIMITS = struct.Struct("<QQ")
"""Length of the window, and of the shortest wait recorded with its runners, in ns."""
STATE = struct.Struct("<IIQII")
STATE_AT = 16
OPEN = struct.Struct("<I")

TURNS_BYTES = 8 + 8 * 16
"""The turns of a CPU, used by the BPF program only."""
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
    """The BPF program's state of the last window. ``began`` is in its own clock."""

    is_open: int
    is_over: int
    began: int
    knows_waits: int
    knows_interrupts: int


class CpuCounts(NamedTuple):
    """The counts of one CPU. Times are in ns.

    ``passed`` counts events outside of the window, ``timed`` those whose cost was measured.
    ``lost`` counts edges and ``nameless`` threads beyond the capacity.
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
    """Threads by tid, kept in the kernel's packed form, a third of the memory of records.

    A window has thousands, and most of them are read once. *packed* holds keys and values, in the
    batches in which a map is emptied. Each tid occurs once.
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
        """Return a thread's record. Raises KeyError for an unknown tid."""
        return PartyRecord._make(PARTY.unpack_from(self._values, self._places[tid]))

    def __iter__(self) -> Iterator[int]:
        """Yield the tids."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return the number of threads."""
        return len(self._places)
