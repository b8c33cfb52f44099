"""What crosses between us and the looking objects in the kernel, and how; ``look.h`` has it too."""

import mmap
import struct

from attrs import frozen

from temper_core.observe.kernel_side.detail import BINS, Bounds

MOST_GROUPS = 2_048
MOST_PATHS = 128

ROW = struct.Struct("<II16s16sQIIqqqqqqQiiIIII")
GROUP = struct.Struct("<QII6Q")
PATH = struct.Struct("<QII1280s")
CONTROL_BYTES = 2_672

_ASKED = struct.Struct("<IIIIQQI4x")
_COUNTED = struct.Struct("<7I")
_COUNTS_AT, _COUNTS_BYTES = 40, 40
_BINS = struct.Struct(f"<{BINS}I")
_BINS_AT = 112
_ON_CPU_AT, _ON_CPU_BYTES = 624, 1_024


@frozen
class Asked:
    """What the next look is to do; cgroups told under another number of ``names`` are told again.

    A baseline only remembers the counters.
    """

    is_baseline: bool
    names: int
    bounds: Bounds
    groups: int = MOST_GROUPS


@frozen
class Counted:
    """What a look counted: how much lies in each array, and what had no room.

    ``no_room`` threads wanted a row and had none, ``unnamed`` cgroups are new and yet not among
    the paths, ``unkept`` threads had no memory for their counters.
    """

    seen: int
    rows: int
    no_room: int
    groups: int
    paths: int
    unnamed: int
    unkept: int


class Control:
    """The kernel side's ``struct control``, in memory shared with it."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._look = 0

    def ask(self, asked: Asked) -> None:
        """Prepare the next look: what it is to do, and clean places to count in."""
        self._look = (self._look + 1) % (1 << 32)
        bounds = asked.bounds
        _ASKED.pack_into(
            self._memory,
            0,
            self._look,
            asked.is_baseline,
            asked.names,
            bounds.quota,
            bounds.least_ns,
            bounds.sure_ns,
            asked.groups,
        )
        self._clear(_COUNTS_AT, _COUNTS_BYTES)
        self._clear(_BINS_AT, _BINS.size)
        self._clear(_ON_CPU_AT + _ON_CPU_BYTES * (self._look & 1), _ON_CPU_BYTES)

    @property
    def counted(self) -> Counted:
        """What the last look counted."""
        return Counted(*_COUNTED.unpack_from(self._memory, _COUNTS_AT))

    @property
    def bins(self) -> tuple[int, ...]:
        """How many threads ran or waited how long in the last look; see ``detail``."""
        return _BINS.unpack_from(self._memory, _BINS_AT)

    def _clear(self, at: int, size: int) -> None:
        self._memory[at : at + size] = bytes(size)
