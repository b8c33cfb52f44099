"""A thread that runs one plugin's code, so that its caller can stop waiting."""

import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field, frozen

from temper_core.plugin_host.code_places import Place, authors_place, in_brackets, thread_frames
from temper_core.plugin_host.plain_errors import PlainFailure, failure_of, lines_of
from temper_core.plugin_host.plugin_threads import (
    AbandonedCall,
    end_thread,
    restore_limits,
    start_plugin_thread,
)
from temper_core.standard_output import enter_plugin_thread, leave_plugin_thread

Returned = Any
BUSY_SHARE = 0.5


class CallFailed(Exception):  # noqa: N818 - names what happened
    """The function raised something, SystemExit included. ``failure`` holds nothing of it."""

    def __init__(self, failure: PlainFailure) -> None:
        self.failure = failure
        super().__init__(failure.traceback or failure.reason)


class CallOverdue(Exception):  # noqa: N818 - names what happened
    """The function did not return by its deadline. Its thread was left behind.

    ``is_busy`` is whether it ran, or waited for a CPU, for more than ``BUSY_SHARE`` of the
    second half of the time. ``place`` is the innermost frame of the plugin in brackets.
    """

    def __init__(self, frames: Sequence[Place] = (), *, is_busy: bool) -> None:
        self.is_busy = is_busy
        self.place = in_brackets(authors_place(frames))
        super().__init__("\n".join(lines_of(reversed(frames))))


@frozen
class _Request:
    function: Callable[..., Returned]
    arguments: Sequence[Any]
    answers: "SimpleQueue[tuple[Returned, PlainFailure | None]]"


_Requests = SimpleQueue[_Request | None]


@define(eq=False)
class Worker:
    """One daemon thread that runs calls in turn, from the first call until its owner is freed."""

    name: str
    _requests: _Requests = field(factory=SimpleQueue, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def run(
        self, function: Callable[..., Returned], arguments: Sequence[Any], deadline_s: float
    ) -> Returned:
        """Call *function* in the thread. Raise CallFailed, or CallOverdue after *deadline_s*."""
        restore_limits()
        thread = self._thread or self._start()
        request = _Request(function, arguments, SimpleQueue())
        self._requests.put(request)
        try:
            value, failure = request.answers.get(timeout=deadline_s / 2)
        except Empty:
            value, failure = self._second_half(thread, request, deadline_s / 2)
        if failure is not None:
            raise CallFailed(failure)
        return value

    @property
    def is_running(self) -> bool:
        """Whether the thread still runs, also after it was left behind."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_current(self) -> bool:
        """Whether the caller already is in this thread."""
        return threading.current_thread() is self._thread

    def _start(self) -> threading.Thread:
        # The thread holds only the queue, so that it does not keep its owner alive.
        try:
            thread = start_plugin_thread(_serve, (self._requests,), f"plugin-{self.name}")
        except RuntimeError as error:
            raise CallFailed(failure_of(error)) from error
        weakref.finalize(self, self._requests.put, None)
        self._thread = thread
        return thread

    def _second_half(
        self, thread: threading.Thread, request: _Request, timeout_s: float
    ) -> tuple[Returned, PlainFailure | None]:
        """Wait on, and judge here whether the thread is busy: quick calls cost nothing."""
        before_s = _runnable_s(thread)
        try:
            return request.answers.get(timeout=timeout_s)
        except Empty:
            is_busy = _runnable_s(thread) - before_s > BUSY_SHARE * timeout_s
            frames = thread_frames(thread)
            self._leave_behind(thread)
            restore_limits()
            raise CallOverdue(frames, is_busy=is_busy) from None

    def _leave_behind(self, thread: threading.Thread) -> None:
        end_thread(thread)
        self._requests.put(None)


def _runnable_s(thread: threading.Thread) -> float:
    """Return the seconds for which *thread* has run or waited for a CPU, 0 if that is unknown.

    They are the first two numbers of ``schedstat`` (Documentation/scheduler/sched-stats.rst).
    """
    try:
        text = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text(encoding="ascii")
        ran_ns, waited_ns = text.split()[:2]
    except (OSError, ValueError):
        return 0.0
    return (int(ran_ns) + int(waited_ns)) / 1e9


def _serve(requests: _Requests) -> None:
    enter_plugin_thread()
    try:
        while (request := requests.get()) is not None:
            _answer(request)
            del request  # otherwise the last arguments live until the next call
    except AbandonedCall:
        return
    finally:
        leave_plugin_thread()


def _answer(request: _Request) -> None:
    """Call the function and put its result, or its failure as a plain record."""
    try:
        answer = _called(request)
    finally:
        restore_limits()
    request.answers.put(answer)


def _called(request: _Request) -> tuple[Returned, PlainFailure | None]:
    try:
        return request.function(*request.arguments), None
    except AbandonedCall:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, even an exit
        return None, failure_of(error)
