"""Later tries of plugins that did not answer by their deadline when the agent started.

A disk that is slow while the node boots is no fault of the plugin. Each try runs in a thread of its
own, so that nothing waits for it, and begins only when the thread of the last one has ended. A
plugin that computed all the time is not tried again.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from temper_core.errors import PluginError
from temper_core.plugin_host.hosted_plugin import HostedPlugin, Hung

FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 300.0
MOST_TRIES = 8
"""After these tries, some 20 minutes, the plugin is set aside for good."""
TRY_DEADLINE_S = 60.0

Accept = Callable[[Any], None]


@define(eq=False)
class _Overdue:
    """A call that did not return in time, and its next try. All times are monotonic seconds."""

    guest: HostedPlugin
    function: Callable[..., Any]
    arguments: Sequence[Any]
    accept: Accept
    due_at: float
    pause_s: float = FIRST_PAUSE_S
    tries: int = 0
    thread: threading.Thread | None = None
    has_answered: bool = False
    answer: Any = None
    is_hopeless: bool = False

    def begin(self) -> None:
        """Call the function in a thread."""
        self.tries += 1
        name = f"retry-{self.guest.name}"
        self.thread = threading.Thread(target=self._attempt, name=name, daemon=True)
        self.thread.start()

    @property
    def is_running(self) -> bool:
        """Whether a try runs now."""
        return self.thread is not None and self.thread.is_alive()

    def _attempt(self) -> None:
        try:
            self.answer = self.guest.attempt(self.function, self.arguments, TRY_DEADLINE_S)
        except Hung as error:
            self.guest.failure, self.is_hopeless = error.reason, error.is_busy
        except PluginError as error:
            self.guest.failure = error.reason
        else:
            self.has_answered = True


@define(eq=False)
class Retries:
    """The calls to try again. Belongs to the agent's main thread."""

    _overdue: list[_Overdue] = field(factory=list, init=False)
    _clock: Callable[[], float] = time.monotonic

    def add(
        self,
        guest: HostedPlugin,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        accept: Accept = lambda _answer: None,
    ) -> None:
        """Try *function* of *guest* again later. *accept* gets its answer, in ``turn``."""
        due_at = self._clock() + FIRST_PAUSE_S
        self._overdue.append(_Overdue(guest, function, arguments, accept, due_at))

    def turn(self) -> list[HostedPlugin]:
        """Begin the tries that are due. Return the plugins that have answered since the last call.

        It never waits.
        """
        returned, kept = [], []
        for overdue in self._overdue:
            is_over = not overdue.is_running  # asked first: an answer comes before the end
            if overdue.has_answered:
                overdue.accept(overdue.answer)
                returned.append(overdue.guest)
            elif not (is_over and (overdue.is_hopeless or overdue.tries >= MOST_TRIES)):
                kept.append(overdue)
        self._overdue = kept
        for overdue in kept:
            self._follow(overdue, self._clock())
        return returned

    @staticmethod
    def _follow(overdue: _Overdue, now: float) -> None:
        if overdue.is_running:
            return
        if overdue.thread is not None:
            overdue.thread = None
            overdue.pause_s = min(2 * overdue.pause_s, LONGEST_PAUSE_S)
            overdue.due_at = now + overdue.pause_s
        elif now >= overdue.due_at and not overdue.guest.is_left_behind:
            overdue.begin()
