"""The raw file of a capture: the drained records, in blocks, as they came."""

import os
import struct
from collections.abc import Iterator

import numpy as np

from temper_plugin_tracer.capture.drained import Drained
from temper_plugin_tracer.capture.kernel_layout import NAME
from temper_plugin_tracer.trace.events import SCHED_EVENT

_HEAD = struct.Struct("<II")
"""The CPU and the number of records. A drain ends with a block of ``NAMES``."""
NAMES = 0xFFFF_FFFF


class RawFile:
    """Writes drains to *descriptor* and reads them back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.bytes_written = 0

    def write(self, drained: Drained) -> None:
        """Append a drain as a whole, or nothing of it. Raises OSError."""
        before = self.bytes_written
        names = np.zeros(0, NAME) if drained.names is None else drained.names
        try:
            for cpu, events in drained.events.items():
                self._block(cpu, events)
            self._block(NAMES, names)
        except OSError:
            os.ftruncate(self._descriptor, before)
            os.lseek(self._descriptor, before, os.SEEK_SET)
            self.bytes_written = before
            raise

    def drains(self) -> Iterator[Drained]:
        """Yield the drains in order."""
        at = 0
        events: dict[int, np.ndarray] = {}
        while at < self.bytes_written:
            cpu, count = _HEAD.unpack(self._read(at, _HEAD.size))
            layout = NAME if cpu == NAMES else SCHED_EVENT
            size = count * layout.itemsize
            content = self._read(at + _HEAD.size, size)
            records = np.frombuffer(content, layout) if count else np.zeros(0, layout)
            at += _HEAD.size + size
            if cpu != NAMES:
                events[cpu] = records
                continue
            yield Drained(events, records)
            events = {}

    def _block(self, cpu: int, records: np.ndarray) -> None:
        for content in (_HEAD.pack(cpu, len(records)), records.view(np.uint8).data):
            left = memoryview(content)
            while left:
                written = os.write(self._descriptor, left)
                self.bytes_written += written
                left = left[written:]

    def _read(self, at: int, size: int) -> bytes:
        parts = []
        while size:
            part = os.pread(self._descriptor, size, at)
            if not part:
                raise OSError("the raw file of the capture is shorter than it was written")
            parts.append(part)
            at, size = at + len(part), size - len(part)
        return b"".join(parts)
