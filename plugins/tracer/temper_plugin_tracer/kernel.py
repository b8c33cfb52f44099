"""The BPF object that records wake-ups and waits, attached during windows only.

It is loaded while windows are requested, and costs nothing between two windows. It is unloaded with
this process, and a window ends by itself.
"""

import mmap
import os
import re
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from heapq import nlargest
from pathlib import Path
from typing import Any, Self

from attrs import field, frozen

from temper_core import BpfError, Skeleton, load_object
from temper_plugin_tracer.kernel_records import (
    CONTROL_BYTES,
    COUNT,
    LIMITS,
    OPEN,
    PAIR,
    PARTY,
    REST,
    STATE,
    STATE_AT,
    TALLY,
    TID,
    WAITS,
    CpuCounts,
    Parties,
    PartyRecord,
    State,
)

NS_PER_S = 1_000_000_000
LONG_WAIT_S = 0.001
OUTSIDE_NS = 85
"""Cost of an event besides the program itself: entering it and returning. ``bench/wakes.py``
measured 50 to 94 for events outside of the window."""
PROGRAMS = ("on_switch", "on_waking")
MOST_CPUS = 8_192

Pair = tuple[int, int]


@frozen
class Room:
    """Capacity of one window: threads, edges and blockings."""

    parties: int = 8_192
    edges: int = 8_192
    blockings: int = 8_192


@frozen
class RowLimits:
    """Number of edges and blockings that are read from a window, the greatest ones."""

    edges: int
    blockings: int


ALL = RowLimits(sys.maxsize, sys.maxsize)


@frozen
class WindowCounts:
    """The counts of a window of ``length_s``.

    Attributes:
        edges: Wakes by the tids of waker and wakee. Tid 0 stands for no thread.
        blockings: Waits and their ns by the tids of waiter and runner. ``end`` may limit edges and
            blockings to the greatest ones.
        parties: The threads by tid.
        lost: Edges and blockings that exceeded the capacity.
        nameless: Threads that exceeded the capacity.
        kernel_s: CPU time of counting, spent in the threads that were running.

    """

    length_s: float
    switches: int = 0
    wakes: int = 0
    lost: int = 0
    nameless: int = 0
    kernel_s: float = 0.0
    edges: Mapping[Pair, int] = field(factory=dict)
    blockings: Mapping[Pair, tuple[int, int]] = field(factory=dict)
    parties: Mapping[int, PartyRecord] = field(factory=dict)
    knows_waits: bool = True
    knows_interrupts: bool = False


class WakeKernel:
    """The loaded object. ``begin`` starts a window, ``end`` returns it, ``close`` unloads."""

    def __init__(self, skeleton: Skeleton, cpus: int) -> None:
        self._skeleton = skeleton
        self._cpus = cpus
        self._links: list[int] = []
        self._is_dirty = False
        self._began_s = 0.0
        self._length_s = 0.0
        with ExitStack() as opened:
            self._control = self._memory(opened, "control", CONTROL_BYTES)
            self._tallies = self._memory(opened, "tallies", TALLY.size * cpus)
            self._memories = opened.pop_all()

    @classmethod
    def open(cls, room: Room | None = None, *, sys_root: str = "/sys") -> Self:
        """Load the object, in some 20 to 40 ms, without attaching it. Raises ``BpfError``."""
        cpus = _possible_cpus(sys_root)
        room = room or Room()
        sizes = {
            "tallies": cpus,
            "parties": room.parties,
            "edges": room.edges,
            "blockings": room.blockings,
        }
        with ExitStack() as opened:
            skeleton = opened.enter_context(_load(sizes))
            kernel = cls(skeleton, cpus)
            opened.pop_all()
        return kernel

    @property
    def is_open(self) -> bool:
        """Whether a window is open."""
        return bool(self._links)

    def begin(self, length_s: float, *, long_wait_s: float = LONG_WAIT_S) -> None:
        """Attach, and count for *length_s* at most, even if ``end`` is called later.

        Waits of *long_wait_s* or more are recorded with the threads that ran meanwhile.
        Raises ``BpfError``.
        """
        self._detach()
        if self._is_dirty:
            self._empty()
        self._is_dirty = True
        self._tallies[:] = bytes(len(self._tallies))
        limits = int(length_s * NS_PER_S), int(long_wait_s * NS_PER_S)
        LIMITS.pack_into(self._control, 0, *limits)
        STATE.pack_into(self._control, STATE_AT, 0, 0, 0, 0, 0)
        self._skeleton.update("parties", TID.pack(REST), bytes(PARTY.size))
        try:
            for program in PROGRAMS:
                self._links.append(self._skeleton.link(program))
        except BpfError:
            self._detach()
            raise
        self._length_s, self._began_s = length_s, time.monotonic()
        OPEN.pack_into(self._control, STATE_AT, 1)

    def end(self, *, most: RowLimits = ALL) -> WindowCounts:
        """Detach, and return the counts since ``begin``. Raises ``BpfError``."""
        OPEN.pack_into(self._control, STATE_AT, 0)
        length_s = min(self._length_s, time.monotonic() - self._began_s)
        self._detach()
        state = State(*STATE.unpack_from(self._control, STATE_AT))
        tally = self._tally()
        counts = WindowCounts(
            length_s=length_s,
            switches=tally.switches,
            wakes=tally.wakes,
            lost=tally.lost,
            nameless=tally.nameless,
            kernel_s=_kernel_s(tally),
            edges={pair: wakes for pair, (wakes,) in self._most("edges", COUNT, most.edges)},
            blockings=dict(self._most("blockings", WAITS, most.blockings)),
            parties=Parties(self._skeleton.drain("parties", TID.size, PARTY.size)),
            knows_waits=bool(state.knows_waits),
            knows_interrupts=bool(state.knows_interrupts),
        )
        self._is_dirty = False
        return counts

    def close(self) -> None:
        """Detach and unload. A second call does nothing."""
        self._detach()
        self._memories.close()
        self._skeleton.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _memory(self, opened: ExitStack, name: str, size: int) -> mmap.mmap:
        return opened.enter_context(self._skeleton.memory(name, size))

    def _detach(self) -> None:
        while self._links:
            os.close(self._links.pop())

    def _empty(self) -> None:
        """Discard the counts of a window that was not ended."""
        for name, key, value in (("edges", PAIR, COUNT), ("blockings", PAIR, WAITS)):
            deque(self._skeleton.drain(name, key.size, value.size), maxlen=0)
        deque(self._skeleton.drain("parties", TID.size, PARTY.size), maxlen=0)

    def _tally(self) -> CpuCounts:
        content = self._tallies[: TALLY.size * self._cpus]
        return CpuCounts(*map(sum, zip(*TALLY.iter_unpack(content), strict=True)))

    def _pairs(self, name: str, value: struct.Struct) -> Iterator[tuple[Pair, tuple[int, ...]]]:
        for keys, values in self._skeleton.drain(name, PAIR.size, value.size):
            yield from zip(PAIR.iter_unpack(keys), value.iter_unpack(values), strict=True)

    def _most(self, name: str, value: struct.Struct, most: int) -> list[tuple[Pair, Any]]:
        """Empty a map, and return the *most* entries with the largest last number."""
        return nlargest(most, self._pairs(name, value), key=lambda entry: entry[1][-1])


def _load(sizes: Mapping[str, int]) -> Skeleton:
    """Load the object that reads the interrupt count, or the plain one if the kernel refuses it.

    The interrupt count is a symbol that kernels without CONFIG_KALLSYMS_ALL do not export.
    The load then fails with ENOENT (check_pseudo_btf_id, as of Linux 6.18).
    """
    with suppress(BpfError):
        return load_object(__package__, "wakes", max_entries=sizes)
    return load_object(__package__, "wakes_plain", max_entries=sizes)


def _kernel_s(tally: CpuCounts) -> float:
    """Return the cost of all events, extrapolated from the timed ones."""
    events = tally.switches + tally.wakes
    mean_ns = tally.timed_ns / tally.timed if tally.timed else 0.0
    return (events * mean_ns + (events + tally.passed) * OUTSIDE_NS) / NS_PER_S


def _possible_cpus(sys_root: str) -> int:
    """Return the highest possible CPU number plus one."""
    try:
        text = Path(sys_root, "devices/system/cpu/possible").read_text()
        highest = int(re.split("[-,]", text.strip())[-1])
    except (OSError, ValueError):
        return os.cpu_count() or 1
    return min(highest + 1, MOST_CPUS)
