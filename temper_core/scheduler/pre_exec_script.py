"""Sets up the process and executes the engine.

Usage: ``pre_exec_script.py PARENT NICE GATE STATE PROGRAM ARGUMENT...``. The set-up must happen
after the fork and before the exec, and a forked copy of a threaded agent cannot safely run Python.
So this is a script (``python -I -S``) in a fresh process. It imports nothing of Temper's. An empty
GATE means none. Otherwise it is mounted over STATE for this process alone. Exit codes of its own:
123 the gate cannot be mounted, 124 no mount namespace is available, 125 the parent is gone,
127 the program cannot be run.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
CANNOT_MOUNT_GATE = 123
NO_MOUNT_NAMESPACE = 124
PARENT_GONE = 125
CANNOT_RUN = 127
NO_GATE = (CANNOT_MOUNT_GATE, NO_MOUNT_NAMESPACE)
"""The exit codes that mean that this engine can be started, but not behind a gate."""


def main(arguments: list[str]) -> int:
    """Request the parent-death signal, mount the gate, raise the priority, and exec."""
    parent, nice, gate, state, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        sys.stderr.write("temper: cannot ask for the parent-death signal\n")
        return CANNOT_RUN
    if os.getppid() != int(parent):
        return PARENT_GONE  # it died before the request, so no signal will arrive
    refused = _mount_gate(libc, gate, state) if gate else 0
    if refused:
        return refused
    _raise_priority(int(nice))
    _restore_signals()
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"temper: cannot run {command[0]}: {error.strerror}\n")
    return CANNOT_RUN


def _mount_gate(libc: ctypes.CDLL, gate: str, state: str) -> int:
    """Mount *gate* over *state* in a namespace of this process's own. Return an exit code.

    The namespace is a slave: mounts made here stay here, but an unmount by the host takes effect
    here too. A private namespace would keep the volumes of ended pods busy.
    """
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None) != 0:
        sys.stderr.write(f"temper: no mount namespace of its own: {_error()}\n")
        return NO_MOUNT_NAMESPACE
    if libc.mount(os.fsencode(gate), os.fsencode(state), None, MS_BIND, None) != 0:
        sys.stderr.write(f"temper: cannot mount the gate over {state}: {_error()}\n")
        return CANNOT_MOUNT_GATE
    return 0


def _error() -> str:
    return os.strerror(ctypes.get_errno())


def _raise_priority(nice: int) -> None:
    """Set *nice*: the verifier runs on an ordinary thread and starves on a busy node."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError:
        return  # without CAP_SYS_NICE the engine only loads more slowly


def _restore_signals() -> None:
    """Restore signals that Python ignores or the agent blocks. Both would survive the exec."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
