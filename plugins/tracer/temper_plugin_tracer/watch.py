"""Watches wake-ups and waits in windows, on a thread of its own, while somebody wants to know."""

import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import structlog
from attrs import evolve

from temper_core import BpfError, Snapshot, WakeWindow, explain_bpf_error
from temper_plugin_tracer.kernel import WakeKernel
from temper_plugin_tracer.state import WakeState
from temper_plugin_tracer.windows import WindowResult, Windows

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LONGEST_WANTED_S = 3_600.0
LINGER_S = 300.0
"""How long the kernel side stays loaded when nobody wants it any more. It takes some 3 MB."""
RETRY_S = 300.0
"""After the kernel refused, or a fault. Asking anew tries at once."""
BROKEN = "watching ended by a fault of its own, which standard error tells"
FRESH_PERIODS = 3
OPEN_S = 0.5
"""Loading the kernel side takes some 20 to 40 ms. Who asks waits so long for the answer."""

Charge = Callable[[], AbstractContextManager[None]]


class WakeWatch:
    """Off until ``want`` is called, or *is_wanted*. Then it looks when it may.

    Nothing is loaded while it is off. ``want`` and ``state`` are for any thread, all else for the
    agent's loop. *charge* books CPU time of the calling thread, and *take* is called with each
    window.
    """

    def __init__(
        self,
        *,
        is_wanted: bool = False,
        open_kernel: Callable[[], WakeKernel] = WakeKernel.open,
        proc_root: str = "/proc",
        charge: Charge = nullcontext,
        take: Callable[[WakeWindow], None] = lambda _: None,
    ) -> None:
        self.wanted_until = math.inf if is_wanted else 0.0
        self._take_window = take
        self._open_kernel = open_kernel
        self._proc_root = proc_root
        self._charge = charge
        self._closing, self._news = threading.Event(), threading.Event()
        self._windows = Windows(self._closing, proc_root)
        self._snapshot: Snapshot | None = None
        self._state = WakeState(self.wanted_until)
        self._ended = -math.inf
        self._due = self._retry_at = 0.0
        self._starting = threading.Lock()
        self._opened = threading.Event()
        self._opened.set()
        self._worker: threading.Thread | None = None
        self._is_working = False

    @property
    def last(self) -> WakeWindow | None:
        """The last window there was; None before the first."""
        return self._state.window

    @property
    def state(self) -> WakeState:
        """How watching stands now."""
        return evolve(self._state, wanted_until=self.wanted_until)

    def want(self, seconds: float) -> None:
        """Keep watching for *seconds* from now on, or longer where somebody wants that.

        Waits, a moment at most, until it is known whether the kernel allows it, for ``state``.
        """
        now = time.monotonic()
        with self._starting:  # two may ask at once, and the longer wish holds
            self.wanted_until = max(self.wanted_until, now + min(seconds, LONGEST_WANTED_S))
        self._retry_at = 0.0
        self._start(now)
        self._opened.wait(OPEN_S)

    def turn(self, now: float, snapshot: Snapshot | None) -> None:
        """Take the last snapshot, which names threads, and begin to watch if that is wanted.

        Takes microseconds: all that takes longer is done on a thread of its own.
        """
        self._snapshot = snapshot
        if self._retry_at <= now < self.wanted_until and not self._is_working:
            self._start(now)

    def recent(self, now: float, period_s: float = 0.0) -> WakeWindow | None:
        """Return the last window, unless it is older than a few periods."""
        window = self._state.window
        if window is None or now - self._ended > FRESH_PERIODS * max(window.every_s, period_s):
            return None
        return window

    def defects(self, now: float) -> tuple[str, ...]:
        """Say what is in the way of watching, while that is wanted."""
        reason = self._state.reason
        return (f"wakes: {reason}",) if reason and now < self.wanted_until else ()

    def close(self) -> None:
        """Stop watching. When this returns nothing is attached or loaded any more."""
        with self._starting:
            self._closing.set()
            self._news.set()
            worker = self._worker
        if worker is not None:
            worker.join()

    def _start(self, now: float) -> None:
        with self._starting:
            if self._is_working:
                self._news.set()
            elif not self._closing.is_set() and now < self.wanted_until:
                if self._worker is not None:
                    self._worker.join()
                self._opened.clear()
                self._is_working = True
                self._worker = threading.Thread(target=self._work, name="wakes", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        why = BROKEN
        try:
            with self._open_kernel() as kernel:
                self._say("")
                self._opened.set()
                self._watch(kernel)
            why = ""
        except BpfError as error:
            told = explain_bpf_error(error, self._proc_root)
            why = "; ".join(filter(None, [told.reason, told.remedy]))
        finally:
            if why:
                self._retry_at = time.monotonic() + RETRY_S
                self._say(why)
            self._is_working = False  # before anybody hears why, who may then ask again at once
            self._opened.set()

    def _watch(self, kernel: WakeKernel) -> None:
        """Watch whenever a window is due, until nobody has wanted one for a while."""
        while not self._closing.is_set():
            now = time.monotonic()
            rest_s = self._due - now
            if now >= self.wanted_until:
                rest_s = max(self.wanted_until, self._due) + LINGER_S - now
                if rest_s <= 0:
                    return
            if rest_s > 0:
                self._news.wait(rest_s)
                self._news.clear()
                continue
            with self._charge():
                watched = self._windows.watch(kernel, self._snapshot)
            self._due = now + watched.rest_s
            self._take(watched)

    def _take(self, watched: WindowResult) -> None:
        self._say(watched.reason)
        if watched.window is None:
            return
        self._take_window(watched.window)
        self._ended = time.monotonic()
        before = self._state
        self._state = evolve(
            before,
            window=watched.window,
            windows=before.windows + 1,
            kernel_s=before.kernel_s + watched.kernel_s,
            own_s=before.own_s + watched.own_s,
            knows_interrupts=watched.knows_interrupts,
        )

    def _say(self, reason: str) -> None:
        if reason and reason != self._state.reason:
            log.warning("wakes_not_watched", reason=reason)
        self._state = evolve(self._state, reason=reason)
