"""The processes started by a helper: found by session and environment, ended with the helper."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from attrs import field, frozen

from temper_core.instruments.family_pace import FamilyLook
from temper_core.instruments.given_numbers import NumberWatch
from temper_core.patient_reading import PatientReader, cgroup_owner

MARK = "TEMPER_HELPER"
"""An environment variable of a helper. Its descendants inherit it, in other sessions too."""
MARK_WITHIN = 128 * 1024
"""Bytes of an environment that are read. A process may claim gigabytes (PR_SET_MM, prctl(2))."""
MOST_ROUNDS = 20
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@frozen
class ProcessStat:
    """Fields of ``/proc/PID/stat`` (proc(5)). ``cpu_s`` includes ended children."""

    state: str
    session: int
    cpu_s: float
    start_ticks: int
    resident_bytes: int


def read_stat(proc: Path, pid: int) -> ProcessStat | None:
    """Return the fields of process *pid*, None if it does not exist."""
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
        cpu_s=sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_S,
        start_ticks=int(fields[19]),
        resident_bytes=int(fields[21]) * PAGE_BYTES,
    )


@frozen
class HelperFamily:
    """The helper *pid* and its descendants. *mark* is the value of its ``MARK``."""

    pid: int
    mark: str
    start_ticks: int
    proc: Path = Path("/proc")
    _environments: PatientReader = field(init=False, eq=False, repr=False)
    """A process of any user can hold up the readers of its environment, as of its command line."""

    _numbers: NumberWatch = field(init=False, eq=False, repr=False)
    _known: set[int] = field(init=False, factory=set, eq=False, repr=False)

    @_numbers.default
    def _number_watch(self) -> NumberWatch:
        return NumberWatch(self.proc)

    @_environments.default
    def _patient_reader(self) -> PatientReader:
        return PatientReader(self._environment, owner_of=cgroup_owner(self.proc))

    def others(self) -> Iterator[tuple[int, ProcessStat]]:
        """Yield the living descendants of the helper, by a search through all processes."""
        return self._members(self._listed())

    def followed(self) -> list[tuple[int, ProcessStat]]:
        """Return those that the last look has found, and of the processes made since the last call.

        It misses one whose number the kernel has given a second time in between, and one whose
        environment could not be read at once. ``others`` finds these.
        """
        given = self._numbers.look()
        made = [pid for pid in self._listed() if pid in given] if given else []
        return self._noted(self._members(self._known.union(made)))

    def seen_by(self, look: FamilyLook) -> Iterable[tuple[int, ProcessStat]]:
        """Return the descendants that a look finds."""
        if look is FamilyLook.NOTHING:
            return ()
        if look is FamilyLook.NEW:
            return self.followed()
        self._numbers.look()
        return self._noted(self.others())

    def _noted(self, found: Iterable[tuple[int, ProcessStat]]) -> list[tuple[int, ProcessStat]]:
        members = list(found)
        self._known.clear()
        self._known.update(pid for pid, _ in members)
        return members

    def _listed(self) -> Iterator[int]:
        names = os.listdir(self.proc)  # noqa: PTH208 - hundreds of names, every second
        return (int(name) for name in names if name.isdecimal())

    def _members(self, pids: Iterable[int]) -> Iterator[tuple[int, ProcessStat]]:
        for pid in pids:
            stat = read_stat(self.proc, pid) if pid != self.pid else None
            if stat is not None and stat.state not in "ZX" and self._has(pid, stat):
                yield pid, stat

    def end_others(self) -> int:
        """Kill all descendants, and repeat for new ones. Return their number."""
        ended = 0
        for _ in range(MOST_ROUNDS):
            killed = [pid for pid, _ in self.others() if self._kill(pid)]
            ended += len(killed)
            if not killed:
                break
        return ended

    def _has(self, pid: int, stat: ProcessStat) -> bool:
        if stat.start_ticks < self.start_ticks:
            return False
        return stat.session == self.pid or self._is_marked(pid)

    def close(self) -> None:
        """End the thread that reads environments."""
        self._environments.close()

    def _is_marked(self, pid: int) -> bool:
        return f"{MARK}={self.mark}" in (self._environments.read(pid) or "").split("\0")

    def _environment(self, pid: int) -> str:
        with suppress(OSError), (self.proc / str(pid) / "environ").open("rb", buffering=0) as file:
            return (file.read(MARK_WITHIN) or b"").decode(errors="replace")
        return ""

    def _kill(self, pid: int) -> bool:
        """Kill a process through a pidfd, so that a reused id is never killed."""
        with suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:
                stat = read_stat(self.proc, pid)
                if stat is not None and self._has(pid, stat):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    return True
            finally:
                os.close(descriptor)
        return False
