"""A command that an observation starts, and ends with all that it started."""

import os
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from temper_core import InputError
from temper_plugin_trainer.proc_files import is_zombie, read_once

END_WITHIN_S = 5.0
"""Seconds from SIGTERM to SIGKILL."""
_STANDARD_ERROR = 2
_POLL_S = 0.01
_SEARCH_EVERY_S = 0.05
"""Seconds between two searches through all processes."""
_STAT_SIZE = 1_024
_GROUP = 2
"""Position of the group after the closing parenthesis of the name (proc_pid_stat(5))."""


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


def ended(pid: int) -> int | None:
    """Return the exit code of a child, or minus its signal. None while it runs.

    It stays to be reaped. Until then its number belongs to no other process and group.
    """
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if result is None:
        return None
    is_exit = result.si_code == os.CLD_EXITED
    return result.si_status if is_exit else -result.si_status


def _end(pid: int) -> None:
    """End the process group of *pid*, by SIGTERM and then by SIGKILL, and reap the command last."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
    ends_at = time.monotonic() + END_WITHIN_S
    while time.monotonic() < ends_at and ended(pid) is None:
        time.sleep(_POLL_S)
    while time.monotonic() < ends_at and _has_members(pid):
        time.sleep(_SEARCH_EVERY_S)
    # Also for a member that was forked during the search.
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _has_members(group: int) -> bool:
    """Whether a process of *group* lives. A signal 0 would reach zombies, and so the command."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - thousands of names
        if not name.isdigit():
            continue
        try:
            stat = read_once(f"/proc/{name}/stat", _STAT_SIZE)
        except OSError:  # it has just ended
            continue
        fields = stat.rpartition(b")")[2].split()
        if int(fields[_GROUP]) == group and not is_zombie(fields):
            return True
    return False
