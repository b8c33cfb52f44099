"""Becomes the engine: ``python -I -S engine_launcher.py PARENT NICE PROGRAM ARGUMENT...``.

Run as a script in a fresh process, because what it does must happen after the fork and before the
exec, and a forked copy of a threaded agent may not safely run Python. It imports nothing of
Temper's. Exit codes of its own: 125 the parent is gone, 127 the program cannot be run.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PARENT_GONE = 125
CANNOT_RUN = 127


def main(arguments: list[str]) -> int:
    """Tie this process's life to the parent thread's, raise its priority, and exec."""
    parent, nice, *command = arguments
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        sys.stderr.write("temper: cannot ask for the parent-death signal\n")
        return CANNOT_RUN
    if os.getppid() != int(parent):
        return PARENT_GONE  # it died before the request, and no signal will come
    _raise_priority(int(nice))
    _restore_signals()
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"temper: cannot run {command[0]}: {error.strerror}\n")
    return CANNOT_RUN


def _raise_priority(nice: int) -> None:
    """Ask for *nice*: the verifier runs on an ordinary thread and starves on a busy node."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError:
        return  # without CAP_SYS_NICE the engine loads more slowly, and that is all


def _restore_signals() -> None:
    """Undo what Python ignores and the agent may block; both would survive the exec."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
