"""An instance of tracefs: made, set up, read, and removed whatever happens.

The maker holds a lock on its directory, so that no other process removes it. It also holds
``free_buffer`` open: if it is killed, the kernel stops the recording and frees the memory.
"""

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from attrs import define, field

from temper_core import MachineError, remove_tracing_instances, tracefs_mounts

ATTEMPTS = 10
LOST = re.compile(r"^(?:overrun|commit overrun|dropped events): (\d+)$", re.MULTILINE)
CLOCK = "boot"
OPTIONS = {"overwrite": "0", "disable_on_free": "1", "stacktrace": "0", "userstacktrace": "0"}
"""Of a full buffer the oldest events are kept, as by the other recorders."""
REMOVAL_S = 2.0
NOT_MOUNTED = "no tracefs is mounted (the chart mounts none)"


@define(eq=False)
class TracingInstance:
    """An instance that records nothing until ``switch``.

    Attributes:
        tracefs: Where tracefs is mounted.
        path: Its directory.

    """

    tracefs: Path
    path: Path
    _lock: int
    _free_buffer: int = -1
    _pipes: dict[int, int] = field(factory=dict)

    @classmethod
    def make(cls, tracefs: Path | None = None) -> "TracingInstance":
        """Make an instance, and remove those of processes that have ended. Raises MachineError."""
        place = tracefs or mounted()
        remove_tracing_instances()
        try:
            path, lock = _made(place / "instances")
        except OSError as error:
            raise _refusal(place / "instances", error) from error
        return cls(place, path, lock)

    def set_up(self, *, buffer_kib: int) -> None:
        """Give each CPU a buffer. Raises MachineError."""
        try:
            self._write("tracing_on", "0")
            self._write("trace_clock", CLOCK)
            for name, value in OPTIONS.items():
                with suppress(FileNotFoundError):
                    self._write(f"options/{name}", value)
            self._write("buffer_size_kb", str(buffer_kib))
            self._free_buffer = os.open(self.path / "free_buffer", os.O_RDONLY | os.O_CLOEXEC)
            for folder in (self.path / "per_cpu").iterdir():
                flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
                pipe = os.open(folder / "trace_pipe_raw", flags)
                self._pipes[int(folder.name.removeprefix("cpu"))] = pipe
        except OSError as error:
            raise _refusal(self.path, error) from error

    def enable(self, events: Iterable[str]) -> None:
        """Enable ``system/event``, each. Raises MachineError."""
        try:
            for event in events:
                self._write(f"events/{event}/enable", "1")
        except OSError as error:
            raise _refusal(self.path, error) from error

    def switch(self, *, is_on: bool) -> None:
        """Begin or stop recording. Raises OSError."""
        self._write("tracing_on", "1" if is_on else "0")

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that have a buffer."""
        return tuple(sorted(self._pipes))

    def read(self, cpu: int, page_bytes: int, most_bytes: int) -> bytes:
        """Return the pages of a CPU that are filled, at most *most_bytes*. Raises OSError."""
        parts = []
        for _ in range(most_bytes // page_bytes):
            try:
                part = os.read(self._pipes[cpu], page_bytes)
            except BlockingIOError:
                break
            if len(part) != page_bytes:
                break
            parts.append(part)
        return b"".join(parts)

    def lost(self) -> Mapping[int, int]:
        """Return how many events of each CPU found no room. Raises OSError."""
        by_cpu = {}
        for cpu in self.cpus:
            text = (self.path / f"per_cpu/cpu{cpu}/stats").read_text()
            by_cpu[cpu] = sum(map(int, LOST.findall(text)))
        return {cpu: lost for cpu, lost in by_cpu.items() if lost}

    def close(self) -> None:
        """Remove the instance. A second call does nothing."""
        if self._lock < 0:
            return
        with suppress(OSError):
            self.switch(is_on=False)
        for descriptor in (*self._pipes.values(), self._free_buffer):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipes.clear()
        _remove(self.path)
        os.close(self._lock)
        self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, name: str, value: str) -> None:
        descriptor = os.open(self.path / name, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)


def mounted() -> Path:
    """Return the tracefs in which instances can be made. Raises MachineError."""
    mounts = tracefs_mounts()
    for mount in mounts:
        if os.access(mount / "instances", os.W_OK):
            return mount
    if not mounts:
        raise MachineError(NOT_MOUNTED)
    raise MachineError(f"{mounts[0]}/instances cannot be written; run as root")


def _made(instances: Path) -> tuple[Path, int]:
    for _ in range(ATTEMPTS):
        path = instances / f"temper-{os.getpid()}-{os.urandom(3).hex()}"
        path.mkdir()
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # another process took it for an abandoned one
        fcntl.flock(lock, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return path, lock
        os.close(lock)
    raise OSError(errno.EAGAIN, "every new instance is removed at once", str(instances))


def _remove(path: Path) -> None:
    """Remove an instance. A reader of one of its files may delay that for a moment."""
    deadline = time.monotonic() + REMOVAL_S
    while True:
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() >= deadline:
                return  # the next capture, or the agent's start, removes it
            time.sleep(0.02)
        else:
            return


def _refusal(path: Path, error: OSError) -> MachineError:
    remedy = "; run as root" if error.errno in {errno.EPERM, errno.EACCES} else ""
    return MachineError(f"{error.filename or path}: {error.strerror}{remedy}")
