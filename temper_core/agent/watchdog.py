"""Ends the agent when its loop does not turn, even while a plugin holds the interpreter's lock."""

import ctypes
import faulthandler
import os
import signal

import structlog

GRACE_S = 10.0
"""Seconds from the stacks to the end. A process that was stopped for longer than the bound gets
the first expiry when it continues, and turns long before the second one."""

STDERR = 2
"""The descriptor of the log."""

SA_RESETHAND = -0x80000000
"""sigaction(2): the disposition becomes the default when the handler is called. An int in C."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _SigAction(ctypes.Structure):
    """``struct sigaction`` of glibc and musl, where the kernel has no layout of its own."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class Watchdog:
    """Ends the process ``bound_s`` + ``GRACE_S`` seconds after the last call of ``turned``.

    The timer is ITIMER_REAL, so neither thread nor interpreter is needed to fire it. The first
    SIGALRM is handled by faulthandler in C: it writes the stacks of all threads to the log, and
    the kernel resets the signal's disposition. The second SIGALRM ends the process, and with it the
    engine. setitimer(2) counts by CLOCK_MONOTONIC: the time in which the machine sleeps and jumps
    of the clock do not count.

    Process 1 of a PID namespace is not ended by a signal of the default disposition, see
    pid_namespaces(7). There only the stacks are written.
    """

    def __init__(self, bound_s: float) -> None:
        self.bound_s = bound_s
        self._action: _SigAction | None = None
        self._sigaction = ctypes.CDLL(None).sigaction

    def begin(self) -> None:
        """Handle SIGALRM, and count from now."""
        if os.getpid() == 1:
            log.warning("watchdog_cannot_end_process_1", remedy="share the host's PID namespace")
        faulthandler.register(signal.SIGALRM, file=STDERR, all_threads=True)
        self._action = _SigAction()
        self._sigaction(signal.SIGALRM, None, ctypes.byref(self._action))
        self._action.flags |= SA_RESETHAND
        self.turned()

    def turned(self, allowed_s: float = 0.0) -> None:
        """Count anew from *allowed_s* seconds after now, as the loop sleeps or may take longer."""
        if self._action is None:
            return
        signal.setitimer(signal.ITIMER_REAL, self.bound_s + allowed_s, GRACE_S)
        former = _SigAction()
        self._sigaction(signal.SIGALRM, ctypes.byref(self._action), ctypes.byref(former))
        if former.handler is None:  # SIG_DFL: the first signal came, and the second did not yet
            log.warning("loop_was_late", bound_s=self.bound_s)

    def end(self) -> None:
        """Stop counting."""
        if self._action is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.unregister(signal.SIGALRM)
            self._action = None
