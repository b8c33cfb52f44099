"""What a plugin may have done in a helper process, and what it should not."""

import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def twice(number):
    return {"twice": 2 * number}


def _descriptors():
    """Yield the descriptors, but that of libffi, which newer versions keep of their own file."""
    for each in Path("/proc/self/fd").iterdir():
        target = str(each.readlink()) if each.is_symlink() else ""
        if "libffi" not in target:
            yield int(each.name)


def standing(_):
    """Say how this process was started."""
    return {
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "policy": os.sched_getscheduler(0),
        "oom": int(Path("/proc/self/oom_score_adj").read_text()),
        "session": os.getsid(0),
        "pid": os.getpid(),
        "descriptors": sorted(set(_descriptors())),
        "stdin": str(Path("/proc/self/fd/0").readlink()),
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "ignored": [n for n in (1, 2, 13, 15) if signal.getsignal(n) is signal.SIG_IGN],
        "umask": os.umask(0),
        "secret": os.environ.get("A_SECRET"),
        "modules": sorted(name for name in sys.modules if name.startswith("temper_core")),
    }


def eat_memory(_):
    kept = []
    while True:
        kept.append(bytearray(1024 * 1024))


def eat_shared_memory(_):
    """Take memory that no limit of the kernel counts."""
    import mmap  # noqa: PLC0415 - only here

    kept = []
    for _ in range(200):
        kept.append(mmap.mmap(-1, 1024 * 1024))
        kept[-1].write(b"x" * 1024 * 1024)
    time.sleep(60)


def spin(_):
    while True:
        pass


def spin_on(_):
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    spin(_)


def hang(_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def raise_one(text):
    raise ValueError(text)


def leave(code):
    sys.exit(code)


def leave_at_once(code):
    sys.stderr.write("these are my last words\n")
    os._exit(code)


def crash(_):
    ctypes.string_at(0)


def not_a_number(_):
    return [math.nan]


def no_json(_):
    return object()


def huge(size):
    return "x" * size


def deep(_):
    found = []
    for _ in range(100_000):
        found = [found]
    return found


def print_a_lot(size):
    for _ in range(size // 1024):
        sys.stdout.write("y" * 1023 + "\n")
    sys.stderr.write("z" * 1023 + "\n")
    return "done"


def pipes():
    """Find whatever pipe there is beside standard output and standard error."""
    for number in sorted(int(link.name) for link in Path("/proc/self/fd").iterdir()):
        with suppress(OSError):
            if number > 2 and str(Path(f"/proc/self/fd/{number}").readlink()).startswith("pipe:"):
                yield number


def write_garbage(text):
    """Write as if it were the result."""
    for pipe in pipes():
        os.write(pipe, text.encode())
    os._exit(0)


def write_without_end(_):
    for pipe in pipes():
        while True:
            os.write(pipe, b"[" * 65536)


def start_others(file):
    """Fork, fork into a session of its own, and start a program; return before any has ended."""
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
    daemon = os.fork()
    if daemon == 0:
        os.setsid()
        time.sleep(600)
    program = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path(file).write_text(json.dumps([forked, daemon, program.pid]))
    return "started"


def start_others_and_hang(file):
    start_others(file)
    time.sleep(600)


def fork_without_end(_):
    while True:
        if os.fork() == 0:
            time.sleep(600)
        time.sleep(0.005)
