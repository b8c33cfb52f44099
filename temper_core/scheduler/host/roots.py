"""The paths of the machine that the scheduler reads. Tests pass folders."""

import os
from pathlib import Path

from attrs import frozen

from temper_core.kernel_text import kernel_lines
from temper_core.settings.models import Settings


@frozen
class Roots:
    """The directories of the machine.

    ``run`` is the agent's own runtime directory, ``scx`` the engine's. ``node`` holds the node's
    lock. A kernel runs one scheduler, so no setting changes that directory.
    """

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    cgroup: Path = Path("/sys/fs/cgroup")
    boot: Path = Path("/boot")
    kubelet: Path = Path("/var/lib/kubelet")
    run: Path = Path("/run/temper")
    node: Path = Path("/run/temper")
    scx: Path = Path("/var/run/scx")
    kmsg: Path = Path("/dev/kmsg")

    @classmethod
    def of(cls, settings: Settings) -> "Roots":
        """Return this machine's directories for an agent with *settings*."""
        return cls(run=Path(settings.run_directory))

    @property
    def sched_ext(self) -> Path:
        """The kernel's sched_ext directory."""
        return self.sys / "kernel/sched_ext"

    @property
    def stats_socket(self) -> Path:
        """The socket of the engine's statistics. Stale once the engine has ended."""
        return self.scx / "root/stats"

    @property
    def engine_pid(self) -> Path:
        """The file with the engine's process id and start time, for ``temper doctor``."""
        return self.run / "engine.pid"


def read_line(path: Path, limit: int = 65_536) -> str | None:
    """Return up to *limit* bytes of *path*, decoded and stripped, or None if unreadable.

    A pipe in the file's place does not block.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            return (file.read(limit) or b"").decode(errors="replace").strip()
    except OSError:
        return None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_number(path: Path) -> int | None:
    """Return the unsigned integer in *path*, None if there is none."""
    return number_in(read_line(path, limit=64))


def number_in(text: str | None) -> int | None:
    """Return *text* as an unsigned integer, None if it is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def number_in_table(path: Path, name: str) -> int | None:
    """Read the number of *name* in a file of ``name number`` lines."""
    for line in kernel_lines(read_line(path) or ""):
        key, _, value = line.partition(" ")
        if key == name:
            return number_in(value)
    return None
