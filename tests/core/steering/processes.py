"""What tests of the kernel side need of real processes and cgroups."""

import os
import time
from pathlib import Path

from temper_core.bpf import maps
from temper_core.errors import BpfError
from tests.patience import PATIENCE_S

DEFAULT = 2
STAYS = ("sleep", "600")


def number(folder):
    """Tell a cgroup's id from its directory."""
    return folder.stat().st_ino


def until(condition):
    """Wait for what another process, or the kernel, is about to do."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


def named(process, name="sleep"):
    """Wait until a process has got so far as to bear its own name, and return its pid."""
    until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == f"{name}\n")
    return process.pid


def threads_of(kernel, process):
    """Walk without correcting anything; the records of a process by the names of its threads."""
    kernel.walk(write=False)
    return {record.comm: record for record in kernel.records() if record.tgid == process.pid}


def hints_of(kernel, process):
    return {name: record.hint for name, record in threads_of(kernel, process).items()}


def has_gone(map_id):
    try:
        os.close(maps.open_by_id(map_id))
    except BpfError:
        return True
    return False
