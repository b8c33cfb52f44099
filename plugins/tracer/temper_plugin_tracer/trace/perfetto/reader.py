"""Reads Perfetto traces: Temper's own, and recordings of Perfetto."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from temper_core import InputError
from temper_plugin_tracer.trace.perfetto.decoding import decode_bundle
from temper_plugin_tracer.trace.perfetto.merging import Batch, Inference, TimeOrderError, merged
from temper_plugin_tracer.trace.perfetto.packet_index import (
    CompressedPacketsError,
    PacketIndex,
    index_packets,
    machine_of,
    roster_of,
    whole_end,
)
from temper_plugin_tracer.trace.perfetto.plain_file import map_plain, map_with_packets_expanded
from temper_plugin_tracer.trace.perfetto.scanning import DamagedError
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread

__all__ = ["PerfettoTrace"]

BATCH_BYTES = 256 << 10
"""Encoded bundles that are decoded at a time, about 30,000 events."""
Events = npt.NDArray[np.void]


class PerfettoTrace:
    """A trace in a file. Raises InputError where it is damaged, or no Perfetto trace.

    Memory is bounded by the CPUs and threads, and by 24 bytes for each bundle of events.

    Attributes:
        threads: The threads that the trace names.
        machine: The machine. Of a recording of Perfetto, its CPUs are those with events.
        facts: How it was captured, None if Temper did not write it.
        cut: The reason why the file is cut, or "". The part before is read.

    """

    threads: tuple[TracedThread, ...]
    machine: TracedMachine
    facts: CaptureFacts | None
    cut: str

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data, gzip_cut = map_plain(path)
        self._index = self._indexed()
        if not self._index.packets:
            raise InputError(f"{path}: no Perfetto trace: {self._index.cut or 'it has no packet'}")
        self.threads = tuple(roster_of(self._index).values())
        self.machine = machine_of(self._index)
        self.facts = self._index.facts
        self.cut = gzip_cut or self._index.cut

    def blocks(self) -> Iterator[Events]:
        """Yield the events of all CPUs in time order, as ``SCHED_EVENT``, at most 65,536 at a time.

        Raises InputError.
        """
        inference = Inference({thread.tid: thread.tgid for thread in self.threads})
        try:
            for events in merged(self._batches()):
                yield inference.complete(events)
        except DamagedError as error:
            raise self._damaged(error) from error
        except TimeOrderError as error:
            raise InputError(f"{self._path}: {error}") from error

    def _indexed(self) -> PacketIndex:
        try:
            try:
                return index_packets(self._data)
            except CompressedPacketsError:
                self._data = map_with_packets_expanded(
                    self._path, self._data, whole_end(self._data)
                )
                return index_packets(self._data)
        except CompressedPacketsError:
            raise InputError(
                f"{self._path}: compressed packets within compressed packets"
            ) from None
        except DamagedError as error:
            raise self._damaged(error) from error

    def _batches(self) -> Iterator[Batch]:
        """Yield decoded bundles by the time of their first event."""
        index = self._index
        order = np.argsort(np.frombuffer(index.first_ns, np.uint64), kind="stable").tolist()
        bundles: list[Events] = []
        size = 0
        for place, which in enumerate(order):
            start, end = index.starts[which], index.ends[which]
            bundles.append(decode_bundle(self._data, start, end).events)
            size += end - start
            is_last = place + 1 == len(order)
            if is_last or size >= BATCH_BYTES:
                yield bundles, None if is_last else index.first_ns[order[place + 1]]
                bundles, size = [], 0

    def _damaged(self, error: DamagedError) -> InputError:
        return InputError(f"{self._path}: damaged at byte {error.offset}: {error.what}")
