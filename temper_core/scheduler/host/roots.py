"""Where the machine is looked at: every path the scheduler reads. Tests give folders."""

from pathlib import Path

from attrs import frozen

from temper_core.settings.models import Settings


@frozen
class Roots:
    """The machine's trees.

    ``run`` is the agent's own runtime directory, ``scx`` the engine's. ``node`` has the node's
    lock: a kernel runs one scheduler, so no setting moves it.
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
        """Return this machine's trees for an agent with *settings*."""
        return cls(run=Path(settings.run_directory))

    @property
    def sched_ext(self) -> Path:
        """The kernel's sched_ext directory."""
        return self.sys / "kernel/sched_ext"

    @property
    def stats_socket(self) -> Path:
        """The socket the engine gives its statistics on. Stale once the engine is gone."""
        return self.scx / "root/stats"

    @property
    def engine_pid(self) -> Path:
        """The file with process id and start of the agent's engine, for ``temper doctor``."""
        return self.run / "engine.pid"


def read_line(path: Path, limit: int = 65_536) -> str | None:
    """Return what *path* holds, stripped; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(limit).decode(errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the whole number in *path*; None where there is none."""
    return number_in(read_line(path, limit=64))


def number_in(text: str | None) -> int | None:
    """Return the whole number that *text* is; None where it is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
