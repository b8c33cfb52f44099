"""Watches wake-ups and waits in windows, on a thread of its own, while that is requested."""

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
"""How long the BPF object, some 3 MB, stays loaded after the last request has expired."""
RETRY_S = 300.0
"""Delay after a refusal of the kernel or a fault. A new request retries at once."""
BROKEN = "watching ended by a fault of its own, see standard error"
FRESH_PERIODS = 3
OPEN_S = 0.5
"""How long a request waits for the BPF object. Loading it takes some 20 to 40 ms."""

Charge = Callable[[], AbstractContextManager[None]]


class WakeWatch:
    """Takes windows as the budget allows, from the first ``want`` on, or at once if *is_wanted*.

    Nothing is loaded before. ``want`` and ``state`` may be used by any thread, all else by the
    agent's loop only. *charge* accounts CPU time of the calling thread, and *take* is called with
    each window.
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
        """The last window, None before the first."""
        return self._state.window

    @property
    def state(self) -> WakeState:
        """The state of watching."""
        return evolve(self._state, wanted_until=self.wanted_until)

    def want(self, seconds: float) -> None:
        """Watch for *seconds* from now on, or longer if that was requested before.

        Waits up to ``OPEN_S`` until the kernel has loaded or refused the object, so that ``state``
        has the result.
        """
        now = time.monotonic()
        with self._starting:  # of concurrent requests the longer one holds
            self.wanted_until = max(self.wanted_until, now + min(seconds, LONGEST_WANTED_S))
        self._retry_at = 0.0
        self._start(now)
        self._opened.wait(OPEN_S)

    def turn(self, now: float, snapshot: Snapshot | None) -> None:
        """Take the last snapshot, which names threads, and start watching if requested.

        This takes microseconds. Slower work is done on a thread of its own.
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
        """Return why nothing can be watched, while that is requested."""
        reason = self._state.reason
        return (f"wakes: {reason}",) if reason and now < self.wanted_until else ()

    def close(self) -> None:
        """Stop watching, and return once the BPF object is detached and unloaded."""
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
            explanation = explain_bpf_error(error, self._proc_root)
            why = "; ".join(filter(None, [explanation.reason, explanation.remedy]))
        finally:
            if why:
                self._retry_at = time.monotonic() + RETRY_S
                self._say(why)
            self._is_working = False  # first, for a caller may retry as soon as it has the reason
            self._opened.set()

    def _watch(self, kernel: WakeKernel) -> None:
        """Watch whenever a window is due, until ``LINGER_S`` after the last request's end."""
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
                result = self._windows.watch(kernel, self._snapshot)
            self._due = now + result.rest_s
            self._take(result)

    def _take(self, result: WindowResult) -> None:
        self._say(result.reason)
        if result.window is None:
            return
        self._take_window(result.window)
        self._ended = time.monotonic()
        before = self._state
        self._state = evolve(
            before,
            window=result.window,
            windows=before.windows + 1,
            kernel_s=before.kernel_s + result.kernel_s,
            own_s=before.own_s + result.own_s,
            knows_interrupts=result.knows_interrupts,
        )

    def _say(self, reason: str) -> None:
        if reason and reason != self._state.reason:
            log.warning("wakes_not_watched", reason=reason)
        self._state = evolve(self._state, reason=reason)
