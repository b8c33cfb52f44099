"""Somebody else who may write hints: a thread gets into a layer where the plan does not want it."""

import os
import sys
import time

from temper_core.bpf import maps
from temper_core.errors import BpfError
from temper_core.records.steering import FIXED_HINTS

PIN = "/sys/fs/bpf/temper/hints"
EVERY_S = 0.01


def mislead(pid: int, layer: str) -> int:
    """Send process *pid* to *layer* again and again, faster than it is put right; return who."""
    child = os.fork()
    if child == 0:
        try:
            _mislead(pid, FIXED_HINTS[layer])
        finally:
            os._exit(1)
    return child


def _mislead(pid: int, hint: int) -> None:
    key = os.pidfd_open(pid).to_bytes(4, sys.byteorder)
    hints = maps.open_pinned(PIN)
    value = hint.to_bytes(maps.info(hints).value_size, sys.byteorder)
    while True:
        try:
            maps.update(hints, key, value)
        except BpfError:
            return
        time.sleep(EVERY_S)
