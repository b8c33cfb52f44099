"""Threads that run code of plugins, and the limits of the process that such code can change."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

STACK_BYTES = 16 * 1024 * 1024
"""Address space of a thread's stack. The kernel commits only the pages that are used.

On CPython 3.11 x86-64, recursion through ``sorted`` needs the most C stack of nine ways measured:
1 to 2 MiB at the usual limit of 1,000, about 16 MiB at a limit of 10,000.
"""
USUAL_RECURSION = sys.getrecursionlimit()
"""The interpreter's recursion limit before any plugin was loaded."""
MOST_RECURSION = 5_000
"""The largest recursion limit that a plugin may leave behind. The stack suffices for it."""


INTERRUPTS = 10
"""How often a thread is interrupted before it counts as one that hangs in C."""
FIRST_PAUSE_S = 0.1
"""Seconds between the first two interrupts. Each further pause is twice as long: 51 s in all."""


class AbandonedCall(BaseException):
    """Raised inside an abandoned thread, to end it if it runs Python code."""


def start_plugin_thread(
    target: Callable[..., None], arguments: tuple[Any, ...], name: str
) -> threading.Thread:
    """Start a daemon thread with a stack of ``STACK_BYTES``. Raise RuntimeError if it cannot be."""
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    threading.stack_size(STACK_BYTES)
    try:
        thread.start()
    finally:
        threading.stack_size(0)
    return thread


def interrupt(thread: threading.Thread) -> None:
    """Raise AbandonedCall in *thread*.

    A thread that hangs in C receives it when it returns to Python, if ever. The thread loses it
    where Python cannot raise it: in a finalizer or a hook of the garbage collector it is reported
    and dropped, and at the recursion limit RecursionError takes its place.
    """
    import ctypes  # noqa: PLC0415 - slow, and hardly ever needed

    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(AbandonedCall)
    )


def end_thread(thread: threading.Thread) -> None:
    """Interrupt *thread* until it ends, at most ``INTERRUPTS`` times. Return at once.

    It ends a Python loop, which would otherwise use a core until the agent exits.
    """
    interrupt(thread)
    with suppress(RuntimeError):  # no thread can be started: the first interrupt has to do
        threading.Thread(
            target=_interrupt_again, args=(thread,), name="interrupts", daemon=True
        ).start()


def _interrupt_again(thread: threading.Thread) -> None:
    pause_s = FIRST_PAUSE_S
    for _ in range(INTERRUPTS - 1):
        thread.join(pause_s)
        if not thread.is_alive():
            return
        interrupt(thread)
        pause_s *= 2


def restore_limits() -> None:
    """Undo changes of the recursion limit and of the stack size, which all threads share.

    A lower recursion limit fails the calls of other plugins. A higher one, or a smaller stack,
    ends the process where a plugin recurses.
    """
    if not USUAL_RECURSION <= sys.getrecursionlimit() <= MOST_RECURSION:
        with suppress(RecursionError):  # this thread is deeper than that itself
            sys.setrecursionlimit(USUAL_RECURSION)
    if threading.stack_size() not in (0, STACK_BYTES):
        threading.stack_size(0)
