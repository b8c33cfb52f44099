"""The layer of single threads, by the engine's own record: asked of the kernel, not of Temper.

Our agent reads the same record in bulk, by another way (a walk over the threads' own storage).
"""

import ctypes
import errno
import json
import os
import struct
import sys
import urllib.request
from pathlib import Path

import kernel

from temper_core.bpf import maps
from temper_core.errors import BpfError
from temper_core.steering.engine_record import find_engine_record

SYS_PIDFD_OPEN = 434
PIDFD_THREAD = os.O_EXCL
LIBC = ctypes.CDLL(None, use_errno=True)


class Layers:
    """Asks the attached engine; finds it anew when it was replaced."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._attaches = 0
        self._map = -1
        self._size = self._offset = 0
        self.names: list[str] = []

    def refresh(self) -> None:
        """Look which engine is attached, and which layers it was given."""
        attaches = kernel.attaches()
        running = sorted(kernel.engines(), key=_start_of)
        if attaches == self._attaches or kernel.state() != "enabled" or not running:
            return
        # Beside the attached engine a successor may be loading; right after a swap the old one
        # may still be ending. Whoever attached last is the youngest that holds the record.
        record = find_engine_record(running[-1])
        names = self._names()
        if record is None or not names:
            return
        if self._map >= 0:
            os.close(self._map)
        self._map = maps.open_by_id(record.map_id)
        self._size, self._offset = maps.info(self._map).value_size, record.layer_offset
        self._attaches, self.names = attaches, names

    def of(self, tid: int) -> str:
        """Return the name of the layer that thread *tid* is in; empty where there is none."""
        pidfd = LIBC.syscall(SYS_PIDFD_OPEN, tid, PIDFD_THREAD)
        if pidfd < 0:
            return ""
        try:
            key = pidfd.to_bytes(4, sys.byteorder)
            value = maps.lookup(self._map, key, self._size)
        except BpfError as error:
            if error.errno in (errno.ENOENT, errno.ESRCH):
                return ""
            raise
        finally:
            os.close(pidfd)
        number = struct.unpack_from("<I", value, self._offset)[0] if value else len(self.names)
        return self.names[number] if number < len(self.names) else ""

    def _names(self) -> list[str]:
        try:
            with urllib.request.urlopen(f"http://{self._address}/config", timeout=30) as answer:
                return [layer["name"] for layer in json.load(answer)]
        except (OSError, ValueError, TypeError):
            return []


def _start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19])
