"""A command that an observation starts, and ends with all that it started."""

import os
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from temper_core import InputError

END_WITHIN_S = 5.0
"""Seconds from SIGTERM to SIGKILL."""
_STANDARD_ERROR = 2


@contextmanager
def started(
    command: str, option: str = "--command", output: int = _STANDARD_ERROR
) -> Iterator[int]:
    """Run *command* without a shell, and yield its process id. End its process group afterwards.

    Its output goes to the descriptor *output*. That is standard error by default, since standard
    output is for results. Raises InputError, which names *option*, if it cannot be started.
    """
    argv = _words(command, option)
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    redirection = (os.POSIX_SPAWN_DUP2, output, 1)
    try:
        # Interruptions are held back here, and must not be in the command. Python ignores two
        # signals, which the command must not inherit either.
        pid = os.posix_spawnp(
            argv[0],
            argv,
            os.environ,
            file_actions=[null, redirection],
            setpgroup=0,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{option} {argv[0]}: {why}") from error
    try:
        yield pid
    finally:
        _end(pid)


def _words(command: str, option: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{option} {command}: {error}") from error
    if not words:
        raise InputError(f"{option}: names no program")
    return words


def _end(pid: int) -> None:
    """End the process group of *pid*, by SIGTERM and then by SIGKILL, and reap the command."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
    ends_at = time.monotonic() + END_WITHIN_S
    is_reaped = False
    while time.monotonic() < ends_at:
        is_reaped = is_reaped or os.waitpid(pid, os.WNOHANG)[0] == pid
        if is_reaped and not _exists(pid):
            return
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not is_reaped:
        os.waitpid(pid, 0)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # a member has become another user
        return True
    return True
