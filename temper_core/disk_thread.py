"""Uses the disk on a thread of its own, so that a disk that hangs holds nobody for long."""

import _thread
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Generic, TypeVar

import structlog
from attrs import define, field

from temper_core.errors import MachineError
from temper_core.observe.moments import rfc3339

ANSWER_S = 4.0
"""Seconds. A read takes 2 s of CPU time at most, and the call of a plugin has 5 s."""

Returned = TypeVar("Returned")
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SilentDiskError(MachineError):
    """The disk *of* something has not answered since *since*, in seconds since 1970."""

    def __init__(self, of: str, since: float) -> None:
        super().__init__(f"the disk of {of} has not answered since {rfc3339(since)}")


@define(eq=False)
class _Job(Generic[Returned]):
    work: Callable[[], Returned]
    has_ended: threading.Event = field(factory=threading.Event, init=False)
    results: list[Returned] = field(factory=list, init=False)
    error: Exception | None = field(default=None, init=False)

    def run(self, charge: Callable[[], AbstractContextManager[None]]) -> None:
        try:
            with charge():
                self.results.append(self.work())
        except MachineError as error:
            self.error = error
        except Exception as error:  # any error: a bug in one job must not end the others
            self.error = error
            log.exception("disk_job_failed")
        finally:
            self.has_ended.set()


@define(eq=False)
class DiskThread:
    """Does jobs in turn, on a thread that lives while there are any. Any thread may call it.

    Errors name the disk *of* something. *charge* accounts the CPU time of the thread.
    """

    of: str
    charge: Callable[[], AbstractContextManager[None]] = nullcontext
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _jobs: deque[_Job[Any]] = field(factory=deque, init=False)
    _is_running: bool = field(default=False, init=False)
    _began_at: float = field(default=0.0, init=False)
    _began_s: float = field(default=0.0, init=False)

    @property
    def silence(self) -> SilentDiskError | None:
        """The error of a disk whose job under way began ``ANSWER_S`` ago or earlier."""
        is_silent = self._is_running and time.monotonic() - self._began_s >= ANSWER_S
        return SilentDiskError(self.of, self._began_at) if is_silent else None

    def begin(self, work: Callable[[], None]) -> None:
        """Have *work* done, without waiting. Raises MachineError if no thread can be started."""
        self._add(_Job(work))

    def ask(self, work: Callable[[], Returned]) -> Returned:
        """Return the result of *work*. Raises its error.

        Raises SilentDiskError after ``ANSWER_S``, and at once while an earlier job takes longer.
        """
        silence = self.silence
        if silence is not None:
            raise silence
        job = _Job(work)
        self._add(job)
        if not job.has_ended.wait(ANSWER_S):
            raise SilentDiskError(self.of, self._give_up(job))
        if job.error is not None:
            raise job.error
        return job.results[0]

    def _add(self, job: _Job[Any]) -> None:
        with self._lock:
            if not self._is_running:
                try:
                    # threading.Thread.start would wait without end where it finds no memory.
                    _thread.start_new_thread(self._run, ())
                except RuntimeError as error:
                    raise MachineError(f"no thread for {self.of}: {error}") from error
                self._note_begin()
                self._is_running = True
            self._jobs.append(job)

    def _give_up(self, job: _Job[Any]) -> float:
        """Let *job* not begin any more. Return when the job under way began."""
        with self._lock:
            with suppress(ValueError):  # it has begun
                self._jobs.remove(job)
            return self._began_at

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job.run(self.charge)

    def _next(self) -> _Job[Any] | None:
        """Take the next job. The thread ends without one."""
        with self._lock:
            self._note_begin()
            self._is_running = bool(self._jobs)
            return self._jobs.popleft() if self._jobs else None

    def _note_begin(self) -> None:
        self._began_at, self._began_s = time.time(), time.monotonic()
