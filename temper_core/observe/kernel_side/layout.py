"""The memory layout that user space shares with the BPF objects. ``look.h`` mirrors it."""

import mmap
import struct

from attrs import frozen

MOST_GROUPS = 4_096
"""Groups of one look. The last one is for all cgroups without a group of their own."""
NO_CGROUP = 0
"""The number of that last group, which no cgroup has."""
MOST_OF_OWNER = 512
"""Groups of one pod, user or service. The owner's own group takes its other cgroups."""
MOST_PATHS = 128

ROW = struct.Struct("<II16s16sQIIqqqqqqQiiIIIIQ")
GROUP = struct.Struct("<QII6Q")
PATH = struct.Struct("<QII1280s")
CONTROL_BYTES = 2_688

_ASKED = struct.Struct("<6I")
_COUNTED = struct.Struct("<6I")
_U64 = struct.Struct("<Q")
_COUNTED_AT = 24
_LEAST_AT, _CANDIDATE_AT, _FLOOR_AT = 72, 80, 120
_BINS_AT, _BINS_BYTES = 128, 512
_ON_CPU_AT, _ON_CPU_BYTES = 640, 1_024
_CLEARED = ((_COUNTED_AT, 48), (_BINS_AT, _BINS_BYTES))


def rows_for(detail_threads: int) -> int:
    """Return the room for candidates, in rows. *detail_threads* of them keep their rows."""
    return max(1_024, 2 * detail_threads)


@frozen
class LookRequest:
    """The task of the next look. A baseline only stores the counters.

    Cgroups that were reported under another number of ``names`` are reported again. Up to
    ``detail`` threads that used at least ``least_ns`` get rows. Up to ``groups`` cgroups get sums
    of their own, and up to ``of_owner`` of one pod, user or service.
    """

    is_baseline: bool
    names: int
    detail: int
    groups: int = MOST_GROUPS
    of_owner: int = MOST_OF_OWNER
    least_ns: int = 0


@frozen
class LookCounts:
    """The counts of a look: the entries of each array, and the entries without room.

    ``unnamed`` cgroups are new and not among the paths. For ``unkept`` threads the kernel had no
    memory to keep their counters.
    """

    seen: int
    rows: int
    groups: int
    paths: int
    unnamed: int
    unkept: int


class Control:
    """The kernel side's ``struct control``, in memory shared with it."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._look = 0

    def ask(self, asked: LookRequest) -> None:
        """Prepare the next look: write the request and clear the counters."""
        self._look = (self._look + 1) % (1 << 32)
        _ASKED.pack_into(
            self._memory,
            0,
            self._look,
            asked.is_baseline,
            asked.names,
            asked.detail,
            asked.groups,
            asked.of_owner,
        )
        # The kernel side may have a higher bound for candidates from the previous look.
        [bound_ns] = _U64.unpack_from(self._memory, _CANDIDATE_AT)
        _U64.pack_into(self._memory, _CANDIDATE_AT, max(bound_ns, asked.least_ns))
        _U64.pack_into(self._memory, _FLOOR_AT, asked.least_ns)
        on_cpu = (_ON_CPU_AT + _ON_CPU_BYTES * (self._look & 1), _ON_CPU_BYTES)
        for at, size in (*_CLEARED, on_cpu):
            self._memory[at : at + size] = bytes(size)

    @property
    def counted(self) -> LookCounts:
        """The counts of the last look."""
        return LookCounts(*_COUNTED.unpack_from(self._memory, _COUNTED_AT))

    @property
    def least_ns(self) -> int:
        """Least time that a thread ran or waited in the last look to get a row, in ns."""
        [least_ns] = _U64.unpack_from(self._memory, _LEAST_AT)
        return int(least_ns)
