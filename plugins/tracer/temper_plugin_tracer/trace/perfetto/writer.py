"""Writes traces of the scheduler in Perfetto's format (protos/perfetto/trace/trace_packet.proto).

Perfetto's own readers take the events, the names and the tracks. Facts without such a field
are in fields of Temper's own, which they skip: ``fields.Packet``.
"""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from temper_plugin_tracer.trace.perfetto.bundles import UNKNOWN, bundle_of
from temper_plugin_tracer.trace.perfetto.fields import SEQUENCE, TRACE_PACKET, Packet
from temper_plugin_tracer.trace.perfetto.own_records import (
    facts_json,
    machine_json,
    roster_message,
)
from temper_plugin_tracer.trace.perfetto.wire import block, number
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread

__all__ = ["TraceWriter"]

BOOTTIME = 6
"""Perfetto's id of CLOCK_BOOTTIME, the clock of all events."""
MOST_IN_BUNDLE = 65_536
"""Events in a bundle. A reader holds one decoded bundle of each CPU, 32 bytes an event."""
FIRST_TRACK = 1_000
PROCESS_TRACKS = 1 << 40
"""Added to a process id: the track that holds the labels of the process."""
START_OF_TRACE, END_OF_TRACE = 1, 2
SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4
UNIT_COUNT = 2
Events = npt.NDArray[np.void]


class TraceWriter:
    """Writes a trace to *out* as it is called. Methods raise what ``out.write`` raises.

    Attributes:
        bytes_written: Bytes that have been given to *out*.

    """

    def __init__(self, out: BinaryIO) -> None:
        self.bytes_written = 0
        self._out = out
        self._track_ids = count(FIRST_TRACK)
        self._names: dict[int, str] = {}
        self._processes: dict[int, int] = {}
        self._running: dict[int, int] = {}

    def machine(self, machine: TracedMachine, clocks: Mapping[int, int]) -> None:
        """Write the kernel's name, and the *clocks* in ns by Perfetto's id at one moment."""
        fields = zip((1, 3, 2, 4), machine.utsname, strict=False)
        utsname = b"".join(block(field, text) for field, text in fields)
        self._packet(block(Packet.SYSTEM_INFO, block(1, utsname)))
        snapshot = [block(1, number(1, clock) + number(2, ns)) for clock, ns in clocks.items()]
        self._packet(block(Packet.CLOCK_SNAPSHOT, b"".join(snapshot) + number(2, BOOTTIME)))
        self._packet(block(Packet.TEMPER_MACHINE, machine_json(machine)))

    def threads(self, threads: Iterable[TracedThread], ns: int) -> None:
        """Write threads as they are at *ns*. Pods, thread groups and tiers label the processes.

        Threads that are written before their events make those smaller.
        """
        known = list(threads)
        self._names.update((thread.tid, thread.name) for thread in known)
        self._processes.update((thread.tid, thread.tgid) for thread in known)
        processes = _processes(known)
        content = [
            block(1, number(1, tgid) + _command_line(name)) for tgid, name in processes.items()
        ]
        content += [
            block(2, number(1, thread.tid) + block(2, thread.name) + number(3, thread.tgid))
            for thread in known
            if thread.tgid
        ]
        self._packet(block(Packet.PROCESS_TREE, b"".join(content)), ns)
        self._packet(block(Packet.TEMPER_THREADS, roster_message(known)))
        for tgid, labels in _labels(known).items():
            self._label_process(tgid, processes[tgid], labels)

    def events(self, cpu: int, events: Events, names: Mapping[int, str]) -> None:
        """Write events of one CPU in their order in time. They continue those of the last call.

        *names* are names by thread id. They precede those of ``threads``.
        """

        def name_of(tid: int) -> str:
            if tid == 0:
                return f"swapper/{cpu}"
            return names.get(tid) or self._names.get(tid) or f"<{tid}>"

        for first in range(0, len(events), MOST_IN_BUNDLE):
            part = events[first : first + MOST_IN_BUNDLE]
            running = self._running.get(cpu, UNKNOWN)
            bundle, self._running[cpu] = bundle_of(part, running, name_of, self._processes_of)
            self._packet(block(Packet.FTRACE_EVENTS, number(1, cpu) + bundle))

    def track(
        self, name: str, parent: int | None = None, *, is_counter: bool = False, unit: str = ""
    ) -> int:
        """Describe a track of slices and instants, or of a counter in *unit*. Return its id."""
        track = next(self._track_ids)
        body = number(1, track) + block(2, name)
        if parent is not None:
            body += number(5, parent)
        if is_counter:
            body += block(8, block(6, unit) if unit else number(3, UNIT_COUNT))
        self._packet(block(Packet.TRACK_DESCRIPTOR, body))
        return track

    def slice(self, track: int, begin_ns: int, end_ns: int, name: str) -> None:
        """Write a slice. Slices of one track follow each other or are nested."""
        self._track_event(track, begin_ns, SLICE_BEGIN, block(23, name))
        self._track_event(track, end_ns, SLICE_END, b"")

    def instant(
        self, track: int, ns: int, name: str, details: Mapping[str, str] | None = None
    ) -> None:
        """Write an instant with *details* that Perfetto shows as its arguments."""
        notes = [block(4, block(10, key) + block(6, text)) for key, text in (details or {}).items()]
        self._track_event(track, ns, INSTANT, block(23, name) + b"".join(notes))

    def counter(self, track: int, ns: int, value: int) -> None:
        """Write the value that a counter has from *ns* on."""
        self._track_event(track, ns, COUNTER, number(30, value))

    def facts(self, facts: CaptureFacts) -> None:
        """Write how the trace was captured, and which CPUs have lost events."""
        text = facts_json(facts)
        self._packet(block(Packet.TEMPER_FACTS, text))
        self._packet(block(Packet.CHROME_EVENTS, b"".join(
            block(2, block(1, f"temper.{key}") + block(2, value))
            for key, value in _told(facts).items()
        )))  # fmt: skip
        lost = {cpu: count for cpu, count in sorted(facts.lost.items()) if count}
        if lost:
            self._losses(START_OF_TRACE, dict.fromkeys(lost, 0))
            self._losses(END_OF_TRACE, lost)

    def _losses(self, phase: int, lost: Mapping[int, int]) -> None:
        """Write FtraceStats: Perfetto shows the difference between the phases as lost data."""
        cpus = [block(2, number(1, cpu) + number(3, count)) for cpu, count in lost.items()]
        self._packet(block(Packet.FTRACE_STATS, number(1, phase) + b"".join(cpus)))

    def _label_process(self, tgid: int, name: str, labels: Iterable[str]) -> None:
        process = number(1, tgid) + block(6, name) + b"".join(block(8, label) for label in labels)
        body = number(1, PROCESS_TRACKS + tgid) + block(3, process)
        self._packet(block(Packet.TRACK_DESCRIPTOR, body))

    def _track_event(self, track: int, ns: int, kind: int, body: bytes) -> None:
        event = number(9, kind) + number(11, track) + block(22, "temper") + body
        self._packet(block(Packet.TRACK_EVENT, event), ns)

    def _processes_of(self, tids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.array([self._processes.get(tid, 0) for tid in tids.tolist()], np.int64)

    def _packet(self, body: bytes, ns: int | None = None) -> None:
        body += number(Packet.SEQUENCE_ID, SEQUENCE)
        if ns is not None:
            body += number(Packet.TIMESTAMP, ns)
        content = block(TRACE_PACKET, body)
        self._out.write(content)
        self.bytes_written += len(content)


def _processes(threads: Iterable[TracedThread]) -> dict[int, str]:
    """Return the names of the processes, by that of any thread where the process's is unknown."""
    names: dict[int, str] = {}
    for thread in threads:
        if thread.tgid and (thread.tgid not in names or thread.tid == thread.tgid):
            names[thread.tgid] = thread.process or thread.name
    return names


def _command_line(name: str) -> bytes:
    """Return the arguments of a process. Perfetto cuts a single one at its first space."""
    return block(3, name) + (block(3, "") if " " in name else b"")


def _labels(threads: Iterable[TracedThread]) -> dict[int, list[str]]:
    """Return the facts of a process: its pod, and the groups, tiers and layers in it."""
    labels_of: dict[int, dict[str, None]] = {}
    for thread in threads:
        said = {
            "pod": thread.pod,
            "group": thread.group,
            "tier": thread.tier,
            "layer": thread.layer,
        }
        labels = [f"{key} {value}" for key, value in said.items() if value]
        if labels and thread.tgid:
            labels_of.setdefault(thread.tgid, {}).update(dict.fromkeys(labels))
    return {tgid: list(labels) for tgid, labels in labels_of.items()}


def _told(facts: CaptureFacts) -> dict[str, str]:
    """Return the facts as Perfetto's metadata, for people."""
    said: dict[str, Any] = {
        "node": facts.node,
        "seconds": facts.seconds,
        "backend": facts.backend,
        "selection": facts.selection or "whole node",
        "asked_by": facts.asked_by,
        "bounds": ", ".join(f"{name} {most:g}" for name, most in facts.bounds.items()),
        "ended_by": facts.ended_by,
        "lost_events": sum(facts.lost.values()),
    }
    if facts.cpus:
        said["only_cpus"] = ", ".join(map(str, facts.cpus))
    return {key: str(value) for key, value in said.items()}
