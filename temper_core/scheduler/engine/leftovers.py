"""What an agent that was killed leaves in the runtime directories, and its removal at the start."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import structlog

from temper_core.scheduler.engine.process import NEXT_PID_FILE, PID_FILE
from temper_core.scheduler.host.agent_lock import exclusive_access
from temper_core.scheduler.host.roots import Roots
from temper_core.settings.models import Settings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PATTERNS = ("engine-*.json", "engine-*.gate", PID_FILE, NEXT_PID_FILE)


def remove_leftovers(settings: Settings, roots: Roots) -> None:
    """Remove a dead agent's files. Call it while no engine of this agent's exists.

    Nothing of that is needed to start: an engine dies with its agent, and its gate was mounted
    for it alone. What cannot be removed stays. The start that stumbles over it says so. Beside an
    agent that may enforce the files are not a dead one's, and stay.
    """
    if not _notes(roots) and not os.path.lexists(roots.stats_socket):
        return
    with exclusive_access(settings, roots) as is_alone:
        if is_alone:
            _remove(roots)


def _notes(roots: Roots) -> list[Path]:
    return [path for pattern in PATTERNS for path in _found(roots.run, pattern)]


def _remove(roots: Roots) -> None:
    found = _notes(roots)
    for path in found:
        with suppress(OSError):
            path.unlink()
    remove_stale_socket(roots.stats_socket)
    if found:
        log.info("leftovers_removed", files=[path.name for path in found])


def remove_stale_socket(path: Path) -> None:
    """Remove the socket that an ended engine leaves behind. One that is listened on stays."""
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.setblocking(False)  # a hung listener is one, too
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()


def _found(folder: Path, pattern: str) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.glob(pattern))
    return []
