"""Records by the BPF object: loads it, sizes its rings, attaches it and drains it."""

import mmap
import os
import re
import struct
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import numpy as np

from temper_core import BpfError, Skeleton, load_object
from temper_plugin_tracer.capture.drained import Drained, Losses
from temper_plugin_tracer.capture.flight_cost import KernelTally
from temper_plugin_tracer.capture.kernel_layout import (
    EVENT_BYTES,
    NAME_BYTES,
    RING,
    RING_BYTES,
    due_of,
    settings_of,
)
from temper_plugin_tracer.capture.rings import Ring, as_events, event_rings, name_rings
from temper_plugin_tracer.capture.selected_threads import SelectedThreads
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.signals import Signals

ALL_RINGS_BYTES = 32 * 1024 * 1024
"""Memory of the event rings together, 128 KiB of each at least: half a second of 500,000 events/s
on each of two CPUs, or of 16,000 on each of 64."""
LEAST_BITS, MOST_BITS = 12, 18
BUSY_CPU = 2_000_000
"""Events of a CPU in a second, three times as many as two threads that wake each other without end.
Up to 16 CPUs have rings that are drained before they could be full of so many."""
LEAST_PAUSE_S, LONGEST_PAUSE_S = 0.03, 0.12
NAME_BITS = 17
"""131,072 names: a node's threads, noted at once at the beginning, and a storm of a million new
ones a second between two drains."""
MOST_CPUS = 8_192
PLAIN = "recorder_plain"
OBJECTS = ("recorder", PLAIN)
"""By the order of trying. The second is for kernels before 6.7. It knows the threads that live only
where /proc shows them."""
LONGEST_PREFIX = 8
"""Letters of an object's name in the names of its maps (libbpf, internal_map_name)."""
PROGRAMS = (
    "on_fork",
    "on_exec",
    "on_rename",
    "on_exit",
    "on_switch",
    "on_waking",
    "on_migration",
    "on_interrupt",
    "after_interrupt",
    "on_softirq",
    "after_softirq",
)
_TGID = struct.Struct("<I")


def ring_bits(cpus: int, *, all_bytes: int = ALL_RINGS_BYTES) -> int:
    """Return the binary logarithm of the events that the ring of each of *cpus* holds."""
    events = all_bytes // EVENT_BYTES // cpus
    return max(LEAST_BITS, min(MOST_BITS, events.bit_length() - 1))


def pause_s(ring_events: int) -> float:
    """Return the shortest pause between two drains of rings of *ring_events*.

    A drain takes 0.05 ms with warm caches, and 0.36 ms when other work has run meanwhile.
    """
    return max(LEAST_PAUSE_S, min(LONGEST_PAUSE_S, ring_events / BUSY_CPU))


class BpfRecorder:
    """The loaded object. ``begin`` attaches it, ``drain`` may be called from then on."""

    name = "bpf"

    def __init__(self, skeleton: Skeleton, cpus: int, bits: int, *, is_plain: bool = False) -> None:
        self._skeleton = skeleton
        self._is_plain = is_plain
        self._selection = Selection()
        self._living: np.ndarray | None = None
        self._links: list[int] = []
        self._pause_s = pause_s(1 << bits)
        self._due = due_of(bits)
        self._signals = Signals(skeleton.maps["signals"])
        states = skeleton.memory("rings", RING_BYTES * cpus)
        self._states = np.frombuffer(states, RING, count=cpus)
        self._rings = event_rings(
            skeleton.memory("events", EVENT_BYTES * cpus << bits), states, cpus=cpus, bits=bits
        )
        (self._names,) = name_rings(
            skeleton.memory("names", NAME_BYTES << NAME_BITS),
            skeleton.memory("name_ring", RING_BYTES),
            rings=1,
            bits=NAME_BITS,
        )

    @classmethod
    def open(
        cls,
        selection: Selection,
        *,
        bits: int | None = None,
        wraps: bool = False,
        objects: Sequence[str] = OBJECTS,
        sys_root: str = "/sys",
    ) -> Self:
        """Load the first of *objects* that the kernel takes, with rings of 2^*bits* events.

        Raises BpfError.
        """
        cpus = possible_cpus(sys_root)
        bits = ring_bits(cpus) if bits is None else bits
        sizes = {
            "events": cpus << bits,
            "rings": cpus,
            "names": 1 << NAME_BITS,
            "signals": mmap.PAGESIZE,
            "processes": max(1, 4 * len(selection.processes)) if selection.processes else 1,
        }
        content = settings_of(selection, ring_bits=bits, name_bits=NAME_BITS, wraps=wraps)
        with ExitStack() as opened:
            name, skeleton = _loaded(objects, sizes, content)
            opened.enter_context(skeleton)
            recorder = cls(skeleton, cpus, bits, is_plain=name == PLAIN)
            recorder._choose(selection)
            opened.pop_all()
        return recorder

    def begin(self) -> None:
        """Attach, and note the threads that live. Raises BpfError."""
        try:
            for program in PROGRAMS:
                self._links.append(self._skeleton.link(program))
        except BpfError:
            self._detach()
            raise
        self._set_open(is_open=True)
        if self._is_plain:
            self._living = SelectedThreads.living(self._selection)
        else:
            self._skeleton.run("note_living")

    def end(self) -> None:
        """Detach. Recorded events can still be drained."""
        self._set_open(is_open=False)
        self._detach()

    def wait(self, seconds: float, most: int) -> None:
        """Wait until a drain may be due, *seconds* at most.

        The programs signal that a ring has filled by a part. Up to twice that part of each ring may
        be filled without a drain. If *most* is less, the wait is as short as that between two
        drains at least.
        """
        pause_s = min(self._pause_s, seconds)
        if most <= 2 * self._due * len(self._rings):
            time.sleep(pause_s)
            return
        began_s = time.monotonic()
        if self._signals.wait(seconds):
            time.sleep(max(0.0, began_s + pause_s - time.monotonic()))
        self._signals.clear()

    def is_due(self, most: int) -> bool:
        """Whether a ring is full by a part, or *most* events are in the rings."""
        events = self._states["reserved"] - self._states["taken"]
        names = int(self._names.state["reserved"][0] - self._names.state["taken"][0])
        is_filling = int(events.max()) >= self._due or names >= due_of(NAME_BITS)
        return is_filling or int(events.sum()) >= most

    def drain(self) -> Drained:
        """Return what was recorded since the last drain."""
        taken = {cpu: ring.take() for cpu, ring in enumerate(self._rings)}
        return Drained(_events(taken), self.take_names())

    def last(self) -> Drained:
        """Return the newest events of rings that wrap, after ``end``."""
        taken = {cpu: ring.last() for cpu, ring in enumerate(self._rings)}
        return Drained(_events(taken), self.take_names())

    def take_names(self) -> np.ndarray:
        """Return the names that were noted since the last call."""
        living, self._living = self._living, None
        names = self._names.take()
        return names if living is None else np.concatenate([living, names])

    @property
    def ring_events(self) -> int:
        """How many events the ring of each CPU holds."""
        return len(self._rings[0].records)

    def reserved(self) -> list[int]:
        """Return by CPU how many events were recorded so far, overwritten ones included."""
        return [int(ring.state["reserved"][0]) for ring in self._rings]

    def tally(self) -> KernelTally:
        """Return what the programs have counted of rings that wrap."""
        sums = [
            sum(int(ring.state[name][0]) for ring in self._rings)
            for name in ("reserved", "passed", "timed", "timed_ns")
        ]
        return KernelTally(*sums)

    def losses(self) -> Losses:
        """Return what found no room so far."""
        by_cpu = {cpu: ring.lost for cpu, ring in enumerate(self._rings) if ring.lost}
        return Losses(by_cpu, self._names.lost)

    def close(self) -> None:
        """Detach and unload. A second call does nothing."""
        self._detach()
        self._signals.close()
        self._skeleton.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _choose(self, selection: Selection) -> None:
        self._selection = selection
        for tgid in selection.processes:
            self._skeleton.update("processes", _TGID.pack(tgid), _TGID.pack(1))
        leave_out_others(self._rings, selection.cpus)

    def _set_open(self, *, is_open: bool) -> None:
        self._states["is_open"] = is_open
        self._names.state["is_open"] = is_open

    def _detach(self) -> None:
        while self._links:
            os.close(self._links.pop())


def _events(taken: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    return {cpu: as_events(records) for cpu, records in taken.items() if len(records)}


def _loaded(
    objects: Sequence[str], sizes: Mapping[str, int], content: bytes
) -> tuple[str, Skeleton]:
    """Load the first object that the kernel takes. Raise BpfError for the last one."""
    *others, last = objects
    for name in others:
        with suppress(BpfError):
            return name, _load(name, sizes, content)
    return last, _load(last, sizes, content)


def _load(name: str, sizes: Mapping[str, int], content: bytes) -> Skeleton:
    constants = {f"{name[:LONGEST_PREFIX]}.rodata": content}
    return load_object(__package__ or "", name, max_entries=sizes, initial=constants)


def leave_out_others(rings: Sequence[Ring], cpus: Collection[int]) -> None:
    """Have the programs leave out all CPUs but *cpus*, if there are any."""
    for cpu, ring in enumerate(rings if cpus else ()):
        if cpu not in cpus:
            ring.state["is_left_out"][0] = 1


def possible_cpus(sys_root: str = "/sys") -> int:
    """Return the highest possible CPU number plus one."""
    try:
        text = Path(sys_root, "devices/system/cpu/possible").read_text()
        highest = int(re.split("[-,]", text.strip())[-1])
    except (OSError, ValueError):
        return os.cpu_count() or 1
    return min(highest + 1, MOST_CPUS)
