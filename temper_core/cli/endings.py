"""What ends a recording early, and leaves it whole: Ctrl-C, SIGTERM and SIGHUP."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def endings_waited_for() -> Iterator[None]:
    """Keep what ends a recording until it is asked for: no look and no line is cut by it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_told_to_end(wait_s: float) -> bool:
    """Wait for so many seconds, or until something ends the recording; say whether it did."""
    return signal.sigtimedwait(ENDINGS, max(0.0, wait_s)) is not None
