"""Runs one function in a helper process: ``helper_launcher.py PARENT REQUEST RESULT``.

Run as a script (``python -I``) in a fresh process. It imports nothing of Temper's, so that the
helper's memory is the plugin's. REQUEST is the descriptor of a file with the order. RESULT is that
of a pipe for ``{"result": ...}`` or ``{"error": ...}``. Exit codes: 0 the function has returned, 1
it has raised, 125 the parent is gone.
"""

import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PARENT_GONE = 125
NICE = 19
OOM_SCORE = b"1000"
LONGEST_ERROR = 2000
ROOM_FOR_ERROR = 8 * 1024 * 1024
MOST_DESCRIPTORS = 1024


class NoResult(Exception):  # noqa: N818 - the absence of a result is the event
    """The function has no result. The message has the reason."""


def main(arguments: list[str]) -> int:
    """Request the parent-death signal, set the bounds, and run the order."""
    parent, request, result = (int(argument) for argument in arguments)
    die_with(parent)
    for descriptor in (request, result):
        os.set_inheritable(descriptor, False)
    order = read_order(request)
    restore_signals()
    step_back()
    bound(order["memory_bytes"], order["cpu_s"])
    die_with_every_parent()
    sys.path.extend(entry for entry in order["path"] if entry not in sys.path)
    try:
        document = run(order)
        code = 0
    except NoResult as error:
        document, code = json.dumps({"error": str(error)[:LONGEST_ERROR]}).encode(), 1
    write(result, document)
    return code


def die_with(parent: int) -> None:
    """Request SIGKILL for when the thread of *parent* that has started this process ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(PARENT_GONE)  # it died before the request, so no signal will arrive


def die_with_every_parent() -> None:
    """Have each process that is forked from now on end with the one that has forked it."""
    forking = [0]

    def note() -> None:
        forking[0] = os.getpid()

    os.register_at_fork(before=note, after_in_child=lambda: die_with(forking[0]))


def read_order(descriptor: int) -> dict[str, Any]:
    """Return the order: the entry point, its argument, the module path and the bounds."""
    with os.fdopen(descriptor, "rb") as file:
        order: dict[str, Any] = json.loads(file.read())
    return order


def restore_signals() -> None:
    """Restore the default signals: those that the agent ignores or blocks survive the exec."""
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):  # SIGKILL, SIGSTOP, and those of the C library
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def step_back() -> None:
    """Take the lowest priority, and the highest score of the OOM killer."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(OOM_SCORE)


def bound(memory_bytes: int, cpu_s: int) -> None:
    """Set the kernel's limits. A little memory is reserved for reporting that it has run out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes + ROOM_FOR_ERROR))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run(order: dict[str, Any]) -> bytes:
    """Return the result as JSON for the pipe. Raise NoResult if there is none."""
    try:
        function = find(order["entry_point"])
        result = function(order["argument"])
        document = json.dumps({"result": result}, allow_nan=False).encode()
    except MemoryError as error:
        make_room()
        mib = order["memory_bytes"] // (1024 * 1024)
        raise NoResult(f"ran out of its {mib} MiB of memory") from error
    except BaseException as error:  # a plugin may raise anything, even an exit
        traceback.print_exc()
        raise NoResult(words_of(error)) from error
    most = order["result_bytes"]
    if len(document) > most:
        raise NoResult(f"returned {len(document)} bytes of JSON; it may return {most}")
    return document


def find(entry_point: str) -> Callable[[Any], Any]:
    """Import the function ``package.module:function``."""
    module, _, names = entry_point.partition(":")
    target: Any = importlib.import_module(module)
    for name in names.split("."):
        target = getattr(target, name)
    return target  # type: ignore[no-any-return]


def make_room() -> None:
    """Raise the memory limit a little, for reporting that it was reached."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def words_of(error: BaseException) -> str:
    """Return the exception's type and message on one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - a plugin's own __str__ may raise as well
        text = ""
    return f"raised {type(error).__name__}: {text}" if text else f"raised {type(error).__name__}"


def write(descriptor: int, document: bytes) -> None:
    """Write the whole document, unless the reader has closed its end."""
    remaining = memoryview(document)
    with suppress(OSError):
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]


if __name__ == "__main__":
    CODE = main(sys.argv[1:])
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(CODE)  # threads that the function has started are not waited for
