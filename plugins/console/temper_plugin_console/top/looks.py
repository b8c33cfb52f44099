"""Polls the agent in the background, so that a slow answer does not block the screen."""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Thread
from typing import Any

from attrs import define, evolve, field

from temper_core import TemperError
from temper_core.observed import Row, number, rows, table, text
from temper_plugin_console.top.cpu_times import CpuTimes, busy_between, read_cpu_times
from temper_plugin_console.top.history import longer
from temper_plugin_console.top.pane_boxes import PaneInput
from temper_plugin_console.top.processes import read_processes
from temper_plugin_console.top.view import View

FEW, MANY = 50, 500
"""Threads to request: for the busiest, and for another order, a filter or scrolling."""

SETTLING_S = 0.1
"""Seconds for the agent to publish an observation."""

Ask = Callable[[int], Mapping[str, Any]]


def threads_for(view: View, height: int) -> int:
    """Return the number of threads to request for *view* on *height* lines."""
    if view.pane == "threads" and (view.sort != "cpu" or view.filter or view.first or view.is_tree):
        return MANY
    return max(FEW, height)


@define
class ObservationPoller:
    """Polls the agent from a thread. ``seen`` has the last observation."""

    _ask: Ask
    seen: PaneInput
    _answered: Callable[[], None] = lambda: None
    _threads: int = FEW
    _asking: Thread | None = None
    _answer: PaneInput | None = None
    _times: CpuTimes = field(factory=read_cpu_times)
    _last: float = field(factory=time.monotonic)
    _news_in: float = 0.0

    @classmethod
    def begin(cls, ask: Ask, threads: int) -> "ObservationPoller":
        """Poll for the first time. Raises the errors of *ask*."""
        document = ask(threads)
        processes = read_processes(rows(document, "threads"))
        seen = PaneInput(document, processes=processes, history=longer({}, document))
        return cls(ask, seen, threads=threads, news_in=news_in(seen.document))

    def look(self) -> PaneInput:
        """Poll now, and wait for the answer. Its ``trouble`` is the error if no agent answers."""
        self._take(self._asked(self._threads))
        return self.seen

    def call_back(self, answered: Callable[[], None]) -> None:
        """Call *answered*, from another thread, after every answer."""
        self._answered = answered

    def due_in(self, interval: float, threads: int) -> float:
        """Return the seconds until the next poll: not before the agent's next observation.

        0 if more threads are needed than were requested.
        """
        if self._asking is not None:  # the answer ends the wait, unless the thread has died
            return interval
        if threads > self._threads:
            return 0.0
        return max(0.0, self._last + max(interval, self._news_in) - time.monotonic())

    def start(self, threads: int) -> None:
        """Begin a poll, unless one is in progress."""
        if self._asking is None:
            self._threads = threads
            self._asking = Thread(target=self._run, args=(threads,), daemon=True)
            self._asking.start()

    def take_answer(self) -> bool:
        """Store the answer if there is one. Raise RuntimeError if the thread failed by a bug."""
        if self._asking is None or (self._answer is None and self._asking.is_alive()):
            return False
        self._asking.join()
        answer, self._asking, self._answer = self._answer, None, None
        if answer is None:
            raise RuntimeError("the thread that asks the agent ended without an answer")
        self._take(answer)
        return True

    def _run(self, threads: int) -> None:
        try:
            self._answer = self._asked(threads)
        finally:
            self._answered()

    def _asked(self, threads: int) -> PaneInput:
        try:
            return PaneInput(self._ask(threads))
        except TemperError as error:
            return evolve(self.seen, trouble=str(error))

    def _take(self, answer: PaneInput) -> None:
        times = read_cpu_times()
        machine = answer.document.get("machine")
        cpus = machine.get("cpus") if isinstance(machine, Mapping) else None
        # In a container /proc/stat may be of other CPUs than the agent's.
        busy = busy_between(self._times, times) if cpus == len(times) else {}
        processes = read_processes(rows(answer.document, "threads"))
        history = self.seen.history
        if not answer.trouble:
            history = longer(history, answer.document)
        self.seen = evolve(answer, busy=busy, processes=processes, history=history)
        self._times, self._last = times, time.monotonic()
        self._news_in = 0.0 if answer.trouble else news_in(answer.document)


def news_in(document: Row) -> float:
    """Return the seconds until the agent's next observation, 0 if that is not known."""
    observing, overhead = table(document, "observing"), table(document, "overhead")
    period = number(observing, "period_s") or number(overhead, "period_s") or 0.0
    try:
        at = datetime.fromisoformat(text(document, "at")).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    # The clock may have been set in between.
    return min(max(0.0, at + period + SETTLING_S - time.time()), max(0.0, period))
