"""Writes Perfetto traces (protos/perfetto/trace/trace_packet.proto)."""

import json
from collections.abc import Iterable, Mapping
from typing import BinaryIO

import numpy as np
from attrs import asdict

from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread


def varint(number: int) -> bytes:
    """Return *number* as a varint."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Return a field of a varint."""
    return varint(field << 3) + varint(value)


def block(field: int, value: bytes | str) -> bytes:
    """Return a field of bytes."""
    content = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed(values: np.ndarray) -> bytes:
    """Return the varints of *values*."""
    values = np.ascontiguousarray(values).astype(np.int64).view(np.uint64)
    if not len(values):
        return b""
    sizes = np.ones(len(values), np.int64)
    rest = values >> np.uint64(7)
    while rest.any():
        sizes += rest > 0
        rest >>= np.uint64(7)
    ends = np.cumsum(sizes)
    out = np.empty(int(ends[-1]), np.uint8)
    starts, live, shifted, place = ends - sizes, np.arange(len(values)), values.copy(), 0
    while len(live):
        last = sizes[live] == place + 1
        low = (shifted[live] & np.uint64(127)).astype(np.uint8)
        out[starts[live] + place] = low | np.where(last, 0, 128).astype(np.uint8)
        shifted[live] >>= np.uint64(7)
        live = live[~last]
        place += 1
    return out.tobytes()


class TraceWriter:
    """Writes a trace to *out*."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._tracks = 1000
        self.bytes_written = 0

    def machine(self, machine: TracedMachine, clocks: Mapping[int, int]) -> None:
        """Write system_info and clock_snapshot."""
        self._packet(
            block(
                45,
                block(
                    1,
                    b"".join(
                        block(key, text)
                        for key, text in zip((1, 3, 2, 4), machine.utsname, strict=False)
                    ),
                ),
            )
        )
        self._packet(
            block(
                6,
                b"".join(block(1, number(1, key) + number(2, ns)) for key, ns in clocks.items())
                + number(2, 6),
            )
        )

    def threads(self, threads: Iterable[TracedThread], ns: int) -> None:
        """Write the process tree."""
        threads = list(threads)
        processes = {thread.tgid: thread.process or thread.name for thread in threads}
        self._packet(
            block(
                2,
                b"".join(
                    block(1, number(1, tgid) + number(2, 0) + block(3, name))
                    for tgid, name in processes.items()
                )
                + b"".join(
                    block(2, number(1, thread.tid) + block(2, thread.name) + number(3, thread.tgid))
                    for thread in threads
                ),
            ),
            ns,
        )

    def events(self, cpu: int, events: np.ndarray, names: Mapping[int, str]) -> None:
        """Write a bundle."""
        switches = events[events["kind"] == Kind.SWITCH]
        wakings = events[events["kind"] == Kind.WAKING]
        tids, places = np.unique(
            np.concatenate([switches["next"], wakings["next"]]), return_inverse=True
        )
        table: dict[str, int] = {}
        index = np.array(
            [
                table.setdefault(
                    names.get(tid, f"swapper/{cpu}" if not tid else f"<{tid}>"), len(table)
                )
                for tid in tids.tolist()
            ],
            np.int64,
        )
        comms = index[places] if len(tids) else np.zeros(0, np.int64)
        body = b"".join(block(5, comm) for comm in table)
        count = len(switches)
        if count:
            body += block(1, packed(_deltas(switches["ns"]))) + block(2, packed(switches["state"]))
            body += block(3, packed(switches["next"])) + block(4, packed(switches["prio"]))
            body += block(6, packed(comms[:count]))
        if len(wakings):
            body += block(7, packed(_deltas(wakings["ns"]))) + block(8, packed(wakings["next"]))
            body += block(9, packed(wakings["target"])) + block(10, packed(wakings["prio"]))
            body += block(11, packed(comms[count:])) + block(12, packed(wakings["flags"]))
        self._packet(block(1, number(1, cpu) + block(4, body)))

    def track(self, name: str, parent: int | None = None, *, is_counter: bool = False) -> int:
        """Describe a track and return its id."""
        self._tracks += 1
        body = number(1, self._tracks) + block(2, name)
        if parent is not None:
            body += number(5, parent)
        if is_counter:
            body += block(8, number(3, 2))
        self._packet(block(60, body))
        return self._tracks

    def slice(self, track: int, begin_ns: int, end_ns: int, name: str) -> None:
        """Write a slice."""
        self._packet(block(11, number(9, 1) + number(11, track) + block(23, name)), begin_ns)
        self._packet(block(11, number(9, 2) + number(11, track)), end_ns)

    def instant(
        self, track: int, ns: int, name: str, details: Mapping[str, str] | None = None
    ) -> None:
        """Write an instant."""
        body = number(9, 3) + number(11, track) + block(23, name)
        for key, value in (details or {}).items():
            body += block(4, block(10, key) + block(6, value))
        self._packet(block(11, body), ns)

    def counter(self, track: int, ns: int, value: int) -> None:
        """Write a value of a counter."""
        self._packet(block(11, number(9, 4) + number(11, track) + number(30, value)), ns)

    def facts(self, facts: CaptureFacts) -> None:
        """Write the facts as an instant."""
        track = self.track("capture")
        self.instant(track, 0, "capture", {"facts": json.dumps(asdict(facts))})

    def _packet(self, body: bytes, ns: int | None = None) -> None:
        body += number(10, 1)
        if ns is not None:
            body += number(8, ns)
        content = block(1, body)
        self._out.write(content)
        self.bytes_written += len(content)


def _deltas(ns: np.ndarray) -> np.ndarray:
    deltas = np.empty(len(ns), np.int64)
    deltas[0] = ns[0]
    deltas[1:] = np.diff(ns.astype(np.int64))
    return deltas
