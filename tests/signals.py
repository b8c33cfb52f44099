"""The signals that nohup, and a shell for what it runs in the background, have a process ignore.

And signals to a thread that waits for them.
"""

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

FROM_A_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


@contextmanager
def defaults_for_children() -> Iterator[None]:
    """Start children with default actions, also where this process ignores some of the signals.

    An ignored signal stays ignored over exec, a handler does not. So one that does nothing takes
    the place of SIG_IGN: this process goes on after a hang-up, and its children are as usual.
    """
    ignored = [n for n in FROM_A_TERMINAL if signal.getsignal(n) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, _do_nothing)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def ignoring(numbers: Iterable[int]) -> Iterator[None]:
    """Start children that ignore these signals, as nohup and a shell's background do."""
    former = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def interrupting(number: int) -> Iterator[None]:
    """Send a signal to this thread as soon as it waits for one in sigtimedwait(2)."""
    thread = threading.current_thread()
    wait_channel = Path(f"/proc/self/task/{thread.native_id}/wchan")
    is_over = threading.Event()

    def interrupt() -> None:
        while not wait_channel.read_text().startswith("do_sigtimedwait"):
            if is_over.wait(0.01):
                return
        signal.pthread_kill(thread.ident or 0, number)

    sending = threading.Thread(target=interrupt)
    sending.start()
    try:
        yield
    finally:
        is_over.set()
        sending.join()


def _do_nothing(_number: int, _frame: object) -> None: ...
