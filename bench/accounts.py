"""CPU time, by a cgroup, and resident memory of a program and its children."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep

from attrs import define

from temper_core.node.cgroups import detect_cgroups

END_S = 15.0


@define
class Account:
    """A program in a cgroup of its own, which includes all its children."""

    cgroup: Path
    launch: "Callable[[], subprocess.Popen[bytes]]"
    process: "subprocess.Popen[bytes]"
    restarts: int = 0

    @property
    def cpu_s(self) -> float:
        """CPU seconds since the start, including ended children."""
        lines = (self.cgroup / "cpu.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6

    @property
    def resident_mib(self) -> float:
        """Resident memory of all its processes, with shared pages counted for each."""
        pids = (self.cgroup / "cgroup.procs").read_text().split()
        pages = sum(map(_resident_pages, pids))
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def keep_running(self) -> None:
        """Restart the program if it has ended, as a supervisor would."""
        if self.process.poll() is not None:
            self.process, self.restarts = self.launch(), self.restarts + 1

    def end(self) -> None:
        """End the program and its children."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        while (pids := (self.cgroup / "cgroup.procs").read_text().split()) and pids:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            self.process.poll()
            sleep(0.05)
        self.process.wait()
        self.cgroup.rmdir()


def start(name: str, command: Sequence[str], environment: Mapping[str, str]) -> Account:
    """Start *command* in a new cgroup. Raise SystemExit if this user cannot create one."""
    unified = detect_cgroups().unified
    if unified is None or not os.access(unified, os.W_OK):
        raise SystemExit("bench: needs a cgroup v2 hierarchy that it may write to (root)")
    cgroup = unified / f"temper-bench-{os.getpid()}-{name}"
    cgroup.mkdir()
    join = 'echo 0 >"$0/cgroup.procs" && exec "$@"'

    def launch() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["/bin/sh", "-c", join, str(cgroup), *command],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    return Account(cgroup, launch, launch())


def _resident_pages(pid: str) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return 0
