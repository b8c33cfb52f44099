"""Ends the agent when its loop does not turn, even while a plugin holds the interpreter's lock."""

import ctypes
import faulthandler
import os
import signal
import time

import structlog

from temper_core.stderr_stream import unblocking

EXPIRY = signal.SIGUSR1
"""The signal of the first expiry. Its handler is alarm(2)."""

GRACE_S = float(EXPIRY)
"""Seconds from the first expiry to the end: a handler's argument is the number of its signal."""

STDERR = 2
"""The descriptor of the log."""

SIGEV_SIGNAL = 0
"""The kind of notification by a signal, of ``struct sigevent``: asm-generic/siginfo.h."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _SigEvent(ctypes.Structure):
    """``struct sigevent`` of Linux: SIGEV_MAX_SIZE bytes, see sigevent(7)."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("unused", ctypes.c_ubyte * 48),
    )


class _Times(ctypes.Structure):
    """``struct itimerspec``: timer_settime(2)."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("s", ctypes.c_long),
        ("ns", ctypes.c_long),
    )


def _c_library() -> ctypes.CDLL:
    """Load the library that has timer_create(2): librt with a glibc before 2.34."""
    library = ctypes.CDLL(None, use_errno=True)
    return (
        library if hasattr(library, "timer_create") else ctypes.CDLL("librt.so.1", use_errno=True)
    )


class Watchdog:
    """Ends the process ``bound_s`` + ``GRACE_S`` seconds after the last call of ``turned``.

    Neither thread nor interpreter is needed for that. A timer of the kernel sends ``EXPIRY`` after
    ``bound_s``. Its handler is the C library's alarm(2), which sends SIGALRM after ``GRACE_S``.
    faulthandler handles SIGALRM in C: it writes the stacks of all threads to the log, and then
    takes the default action, which ends the process, and with it the engine.

    The second time is counted from the handling of the first signal. A process that was stopped
    for longer than the bound handles it when it continues, and turns long before SIGALRM. The
    stacks are not written earlier, because faulthandler can crash when it reads those of threads
    that run. Both timers count by CLOCK_MONOTONIC: the time in which the machine sleeps and jumps
    of the clock do not count.

    Process 1 of a PID namespace is not ended by a signal of the default disposition, see
    pid_namespaces(7). There only the stacks are written.

    The kernel bounds the timers of timer_create(2) for all processes of a user together
    (RLIMIT_SIGPENDING), and each container that runs as uid 0 may use up those of an agent. The
    timer of setitimer(2) has no such bound. It takes their place, with the one difference that a
    process that was stopped for longer than ``bound_s`` + ``GRACE_S`` ends when it continues.
    """

    def __init__(self, bound_s: float) -> None:
        self.bound_s = bound_s
        self._library = _c_library()
        self._stacks = STDERR
        self._timer: ctypes.c_void_p | None = None
        self._is_counting = False

    def begin(self) -> None:
        """Handle both signals, and count from now."""
        if os.getpid() == 1:
            log.warning("watchdog_cannot_end_process_1", remedy="share the host's PID namespace")
        try:
            self._timer = self._made_timer()
        except OSError as error:
            log.warning("watchdog_counts_by_setitimer", reason=error.strerror)
        self._stacks = unblocking(STDERR)  # a reader that has stalled must not keep the process
        self._is_counting = True
        self.turned()

    def turned(self, allowed_s: float = 0.0) -> None:
        """Count anew from *allowed_s* seconds after now, as the loop sleeps or may take longer."""
        if not self._is_counting:
            return
        self._handle()
        if self._timer is None:
            signal.setitimer(signal.ITIMER_REAL, self.bound_s + allowed_s + GRACE_S)
            return
        self._expire_after(self.bound_s + allowed_s)
        if signal.alarm(0):
            log.warning("loop_was_late", bound_s=self.bound_s)

    def _handle(self) -> None:
        """Handle both signals. A plugin may have registered a handler of its own meanwhile."""
        faulthandler.register(signal.SIGALRM, file=self._stacks, all_threads=True, chain=True)
        self._library.signal(EXPIRY, self._library.alarm)

    def end(self) -> None:
        """Stop counting."""
        if not self._is_counting:
            return
        self._is_counting = False
        if self._timer is not None:
            self._library.timer_delete(self._timer)
            self._timer = None
        signal.alarm(0)
        signal.signal(EXPIRY, signal.SIG_DFL)
        faulthandler.unregister(signal.SIGALRM)
        os.close(self._stacks)

    def _made_timer(self) -> ctypes.c_void_p:
        event = _SigEvent(signal=EXPIRY, notify=SIGEV_SIGNAL)
        timer = ctypes.c_void_p()
        self._checked(
            self._library.timer_create(
                time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)
            )
        )
        return timer

    def _expire_after(self, seconds: float) -> None:
        whole, part = divmod(seconds, 1.0)
        times = _Times(s=int(whole), ns=int(part * 1e9))
        self._checked(self._library.timer_settime(self._timer, 0, ctypes.byref(times), None))

    @staticmethod
    def _checked(result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
