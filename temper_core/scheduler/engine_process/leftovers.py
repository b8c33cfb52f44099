"""Removal of the files that a killed agent left in the runtime directories."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import structlog

from temper_core.scheduler.engine_process.process import NEXT_PID_FILE, PID_FILE
from temper_core.scheduler.host.agent_lock import exclusive_access
from temper_core.scheduler.host.roots import Roots
from temper_core.settings.models import Settings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PATTERNS = ("engine-*.json", "engine-*.gate", PID_FILE, NEXT_PID_FILE)


def remove_leftovers(settings: Settings, roots: Roots) -> None:
    """Remove a dead agent's files. Call it while no engine of this agent's exists.

    No start needs these files: an engine dies with its agent, and its gate was mounted for it
    alone. A file that cannot be removed stays, and a start that fails for it reports that. If
    another agent that may enforce runs, the files are its own and stay.
    """
    if not _notes(roots) and not os.path.lexists(roots.stats_socket):
        return
    with exclusive_access(settings, roots) as is_alone:
        if is_alone:
            _remove(roots)


def _notes(roots: Roots) -> list[Path]:
    return [path for pattern in PATTERNS for path in _found(roots.run, pattern)]


def _remove(roots: Roots) -> None:
    notes = _notes(roots)
    for path in notes:
        with suppress(OSError):
            path.unlink()
    remove_stale_socket(roots.stats_socket)
    if notes:
        log.info("leftovers_removed", files=[path.name for path in notes])


def remove_stale_socket(path: Path) -> None:
    """Remove the socket of an ended engine. A socket with a listener stays."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)  # a hung listener counts as a listener
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()


def _found(folder: Path, pattern: str) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.glob(pattern))
    return []
