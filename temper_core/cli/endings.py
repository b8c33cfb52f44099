"""What ends a recording early, and leaves it whole: Ctrl-C, SIGTERM and SIGHUP.

SIGINT ends it in a background job too, where a shell has it ignored: it is an order to this process
alone, as for the agent. A hang-up does not end what nohup started.
"""

import signal
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

ENDINGS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@contextmanager
def endings_waited_for() -> Iterator[None]:
    """Keep what ends a recording until it is asked for: no look and no line is cut by it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _endings())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_told_to_end(wait_s: float) -> bool:
    """Wait for so many seconds, or until something ends the recording; say whether it did."""
    return signal.sigtimedwait(_endings(), max(0.0, wait_s)) is not None


def _endings() -> AbstractSet[signal.Signals]:
    # A signal that is blocked waits to be taken even where it is ignored.
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return ENDINGS - {signal.SIGHUP} if is_hangup_ignored else ENDINGS
