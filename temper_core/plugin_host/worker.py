"""A thread that runs one plugin's code, so that its caller can stop waiting."""

import threading
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field, frozen

from temper_core.standard_output import enter_plugin_thread, leave_plugin_thread

Returned = Any


class CallFailed(Exception):  # noqa: N818 - names what happened
    """The function raised ``error``, which may be anything, SystemExit included."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(error)


class CallOverdue(Exception):  # noqa: N818 - names what happened
    """The function did not return by its deadline. Its thread was left behind."""


class AbandonedCall(BaseException):
    """Raised inside an abandoned thread, to end it if it runs Python code."""


def interrupt(thread: threading.Thread) -> None:
    """Raise AbandonedCall in *thread*.

    It ends a Python loop, which would otherwise use a core until the agent exits. A thread that
    hangs in C receives it when it returns to Python, if ever.
    """
    import ctypes  # noqa: PLC0415 - slow, and hardly ever needed

    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(AbandonedCall)
    )


@frozen
class _Request:
    function: Callable[..., Returned]
    arguments: Sequence[Any]
    answers: "SimpleQueue[tuple[Returned, BaseException | None]]"


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
        thread = self._thread or self._start()
        request = _Request(function, arguments, SimpleQueue())
        self._requests.put(request)
        try:
            value, error = request.answers.get(timeout=deadline_s)
        except Empty:
            self._leave_behind(thread)
            raise CallOverdue from None
        if error is not None:
            raise CallFailed(error) from error
        return value

    @property
    def is_current(self) -> bool:
        """Whether the caller already is in this thread."""
        return threading.current_thread() is self._thread

    def _start(self) -> threading.Thread:
        # The thread holds only the queue, so that it does not keep its owner alive.
        thread = threading.Thread(
            target=_serve, args=(self._requests,), name=f"plugin-{self.name}", daemon=True
        )
        weakref.finalize(self, self._requests.put, None)
        self._thread = thread
        thread.start()
        return thread

    def _leave_behind(self, thread: threading.Thread) -> None:
        interrupt(thread)
        self._requests.put(None)


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
    try:
        value = request.function(*request.arguments)
    except AbandonedCall:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, even an exit
        request.answers.put((None, error))
    else:
        request.answers.put((value, None))
