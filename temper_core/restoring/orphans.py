"""Engines that outlived their agent. They should have died with it, and are ended here.

An engine is Temper's if its agent's pid file names it, by process id and start time. Other
schedulers are never touched.
"""

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from temper_core.scheduler.engine_process.process import NEXT_PID_FILE, PID_FILE
from temper_core.scheduler.host.processes import status_field
from temper_core.scheduler.host.roots import Roots, read_line
from temper_core.scheduler.preflight.node_checks import start_of

KILL_S = 5.0


@frozen
class Orphan:
    """An engine of Temper's that runs without its agent."""

    pid: int
    name: str
    start: str

    @property
    def text(self) -> str:
        """Its name and process id for messages."""
        return f"{self.name} (process {self.pid})"


def find_orphans(roots: Roots) -> tuple[Orphan, ...]:
    """Return the running engines named by a dead agent's pid files."""
    return tuple(_found(roots))


def _found(roots: Roots) -> Iterator[Orphan]:
    for name in (PID_FILE, NEXT_PID_FILE):
        if not (roots.run / name).is_file():  # opening a pipe would block
            continue
        pid, _, start = (read_line(roots.run / name, limit=64) or "").partition(" ")
        if not (pid.isascii() and pid.isdigit()) or not start:
            continue
        comm = read_line(roots.proc / pid / "comm", limit=64) or ""
        is_that_one = start_of(int(pid), roots.proc) == start and not _is_dead(roots.proc / pid)
        if is_that_one and comm.startswith("scx_"):
            yield Orphan(int(pid), comm, start)


def end_orphan(orphan: Orphan, roots: Roots, *, stop_s: float) -> bool:
    """End an orphan by SIGTERM, and by SIGKILL after *stop_s* seconds. Return whether it ended.

    It signals through a pidfd, so that a reused process id is never signalled.
    """
    try:
        descriptor = os.pidfd_open(orphan.pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        if start_of(orphan.pid, roots.proc) != orphan.start:
            return True
        steps = ((signal.SIGTERM, stop_s), (signal.SIGKILL, KILL_S))
        return any(_ended_by(descriptor, number, wait_s) for number, wait_s in steps)
    finally:
        os.close(descriptor)


def _ended_by(descriptor: int, number: signal.Signals, wait_s: float) -> bool:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    # A descriptor of a process is readable once it has ended (pidfd_open(2)).
    return bool(select.select([descriptor], [], [], wait_s)[0])


def _is_dead(folder: Path) -> bool:
    state = status_field(folder, "State")
    return state is None or state[:1] in "ZX"
