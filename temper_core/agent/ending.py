"""Bounds the end of the agent's process, which code of plugins could otherwise delay for ever.

Python waits at its end for threads that are no daemons, for pools of threads, and for functions of
``atexit``. The engine and all parts of the agent have ended by then.
"""

import os
import signal
import sys
import threading
import time

import structlog

from temper_core.errors import EXIT_CLEAN

WITHIN_S = 5
"""Seconds for the interpreter to end."""
GRACE_S = 5
"""Seconds more, after which the kernel ends the process. This is for a held interpreter's lock."""
MOST_NAMED = 10

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def end_process_within(seconds: int = WITHIN_S, code: int = EXIT_CLEAN) -> None:
    """End this process with *code* in *seconds* unless it ends by itself. It has nothing to lose.

    If no code of Python runs any more, SIGALRM ends it ``GRACE_S`` seconds later.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds + GRACE_S)
    ending = threading.Thread(target=_end, args=(seconds, code), name="temper-ending", daemon=True)
    try:
        ending.start()
    except RuntimeError as error:  # a plugin has used up all threads
        log.warning("end_not_watched", reason=str(error))


def _end(seconds: int, code: int) -> None:
    time.sleep(seconds)
    log.warning("threads_left_behind", after_s=seconds, threads=_left()[:MOST_NAMED])
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def _left() -> list[str]:
    """Return the names of the other threads, first of those that Python waits for."""
    main, own = threading.main_thread(), threading.current_thread()
    threads = sorted(threading.enumerate(), key=lambda thread: thread.daemon)
    return [thread.name for thread in threads if thread not in (main, own)]
