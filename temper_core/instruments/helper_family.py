"""The processes that a helper has started: found by session and environment, ended with it."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from attrs import frozen

MARK = "TEMPER_HELPER"
"""In the environment of a helper. What it starts inherits the variable, in its own session too."""
MOST_ROUNDS = 20
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@frozen
class ProcessStat:
    """What ``/proc/PID/stat`` has of a process (proc(5)). ``cpu_s`` includes its ended children."""

    state: str
    session: int
    cpu_s: float
    start_ticks: int
    resident_bytes: int


def read_stat(proc: Path, pid: int) -> ProcessStat | None:
    """Return the state of a process; None where there is none."""
    try:
        descriptor = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 4096)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessStat(
        state=fields[0].decode(),
        session=int(fields[3]),
        cpu_s=sum(int(each) for each in fields[11:15]) / TICKS_PER_S,
        start_ticks=int(fields[19]),
        resident_bytes=int(fields[21]) * PAGE_BYTES,
    )


@frozen
class HelperFamily:
    """The helper *pid* and what it has started. *mark* is the value of its ``MARK``."""

    pid: int
    mark: str
    start_ticks: int
    proc: Path = Path("/proc")

    def others(self) -> Iterator[tuple[int, ProcessStat]]:
        """Yield the living processes that the helper, or one of them, has started."""
        for name in os.listdir(self.proc):  # noqa: PTH208 - hundreds of names, every second
            if not name.isdecimal() or int(name) == self.pid:
                continue
            found = read_stat(self.proc, int(name))
            if found is not None and found.state not in "ZX" and self._has(int(name), found):
                yield int(name), found

    def end_others(self) -> int:
        """Kill all of them. Return how many. What they start meanwhile is looked for again."""
        ended = 0
        for _ in range(MOST_ROUNDS):
            found = [pid for pid, _ in self.others() if self._kill(pid)]
            ended += len(found)
            if not found:
                break
        return ended

    def _has(self, pid: int, found: ProcessStat) -> bool:
        if found.start_ticks < self.start_ticks:
            return False
        return found.session == self.pid or self._is_marked(pid)

    def _is_marked(self, pid: int) -> bool:
        with suppress(OSError):
            environment = (self.proc / str(pid) / "environ").read_bytes()
            return f"{MARK}={self.mark}".encode() in environment.split(b"\0")
        return False

    def _kill(self, pid: int) -> bool:
        """Kill a process while a descriptor keeps its number from being another's."""
        with suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:
                found = read_stat(self.proc, pid)
                if found is not None and self._has(pid, found):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    return True
            finally:
                os.close(descriptor)
        return False
