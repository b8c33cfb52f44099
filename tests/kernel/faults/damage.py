"""Damage to the node that lasts for a ``with`` block and is mended after it."""

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from traces import CGROUPS, OWN

CPUS = Path("/sys/devices/system/cpu")


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Have not a byte left on the file system that *folder* is on."""
    with mounted(folder, "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs"):
        (folder / "ballast").write_bytes(bytes(4096))
        yield


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write below *folder*."""
    with mounted(folder, "--bind", str(folder)):
        run("mount", "-o", "remount,bind,ro", str(folder))
        yield


@contextmanager
def mounted(where: Path, *what: str) -> Iterator[None]:
    """Mount over *where*."""
    where.mkdir(parents=True, exist_ok=True)
    run("mount", *what, str(where))
    try:
        yield
    finally:
        run("umount", "-l", str(where))


@contextmanager
def unmounted(where: Path, kind: str) -> Iterator[None]:
    """Have no file system at *where*; afterwards the one of that *kind* is back."""
    run("umount", "-l", str(where))
    try:
        yield
    finally:
        run("mount", "-t", kind, kind, str(where))


@contextmanager
def covered(path: Path, text: str = "") -> Iterator[None]:
    """Have another file, with that *text*, in the place of *path*."""
    cover = OWN / "cover"
    cover.write_text(text)
    run("mount", "--bind", str(cover), str(path))
    try:
        yield
    finally:
        run("umount", "-l", str(path))


@contextmanager
def without(path: Path) -> Iterator[None]:
    """Have *path* gone, by another name beside it."""
    beside = path.with_name(f".{path.name}.hidden")
    path.rename(beside)
    try:
        yield
    finally:
        beside.rename(path)


@contextmanager
def saying(path: Path, text: str) -> Iterator[None]:
    """Have a file say something else; what it was is put back whole."""
    before = path.read_bytes() if path.exists() else None
    path.write_text(text)
    try:
        yield
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)


@contextmanager
def replaced(program: Path, script: str) -> Iterator[None]:
    """Have another program under the same name."""
    with without(program):
        program.write_text(script)
        program.chmod(0o755)
        try:
            yield
        finally:
            program.unlink()


@contextmanager
def offline(cpu: int) -> Iterator[None]:
    """Take a CPU from the node."""
    switch = CPUS / f"cpu{cpu}/online"
    switch.write_text("0")
    try:
        yield
    finally:
        switch.write_text("1")


@contextmanager
def jumped(seconds: float) -> Iterator[None]:
    """Have the wall clock be wrong by *seconds*."""
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)
    try:
        yield
    finally:
        time.clock_settime(time.CLOCK_REALTIME, time.time() - seconds)


@contextmanager
def caged(pid: int, **limits: str) -> Iterator[Path]:
    """Have a process, and what it starts, in a cgroup with limits such as ``memory_max``."""
    cage = CGROUPS / "cage"
    cage.mkdir()
    for name, value in limits.items():
        (cage / name.replace("_", ".", 1)).write_text(value)
    try:
        (cage / "cgroup.procs").write_text(str(pid))
        yield cage
    finally:
        _open(cage)


@contextmanager
def limited(pid: int, limit: int, value: int) -> Iterator[None]:
    """Have a process under a resource limit (``resource.RLIMIT_...``)."""
    before = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (value, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, limit, before)


@contextmanager
def named_process(name: str) -> Iterator[int]:
    """Have a process called *name* that does nothing."""
    program = OWN / name
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "infinity"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def run(*words: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(words, check=True, capture_output=True)


def _open(cage: Path) -> None:
    """Let everybody out of *cage* and remove it."""
    for name in ("memory.max", "pids.max"):
        (cage / name).write_text("max")
    while procs := (cage / "cgroup.procs").read_text().split():
        for pid in procs:
            with suppress(OSError):  # it has ended meanwhile
                (CGROUPS / "cgroup.procs").write_text(pid)
    while os.path.exists(cage):  # noqa: PTH110 - the same for a Path
        with suppress(OSError):
            cage.rmdir()
