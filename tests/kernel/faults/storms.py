"""A workload that gets out of hand: ``python storms.py fork|rename|threads|cgroups COUNT FOLDER``.

``threads`` says so on stdout when all of them run, and ends with its stdin; the others end by
themselves.
"""

import ctypes
import os
import sys
import threading
from pathlib import Path

PR_SET_NAME = 15


def fork(count: int, _folder: Path) -> None:
    """Start and end *count* processes, one after another."""
    for _ in range(count):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)


def rename(count: int, _folder: Path) -> None:
    """Give this thread *count* names."""
    prctl = ctypes.CDLL(None).prctl
    for number in range(count):
        prctl(PR_SET_NAME, f"name-{number}".encode(), 0, 0, 0)


def threads(count: int, _folder: Path) -> None:
    """Have *count* threads until stdin ends."""
    threading.stack_size(128 * 1024)
    end = threading.Event()
    for _ in range(count):
        threading.Thread(target=end.wait, daemon=True).start()
    sys.stdout.write("running\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


def cgroups(count: int, folder: Path) -> None:
    """Make *count* cgroups below *folder*, each with a process for a moment, and remove them."""
    made = [folder / f"storm-{number}" for number in range(count)]
    for each in made:
        each.mkdir()
    for each in made[::20]:
        (each / "cgroup.procs").write_text(str(os.getpid()))
    (folder / "cgroup.procs").write_text(str(os.getpid()))
    for each in made:
        each.rmdir()


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3]))
