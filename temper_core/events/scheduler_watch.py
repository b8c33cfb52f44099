"""Events of the scheduler: its mode, and every engine that attached, ended or failed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

from temper_core.events import kinds
from temper_core.events.event_log import AuditEntry, EventLog
from temper_core.records.events import EventKind
from temper_core.records.plans import Generation
from temper_core.records.snapshots import Mode, SafeModeReason, Status
from temper_core.safe_mode.model import Request
from temper_core.scheduler.counters import EngineCounters
from temper_core.scheduler.failure.diagnosis import Diagnosis


class WatchedScheduler(Protocol):
    """The parts of the scheduler that are watched."""

    @property
    def status(self) -> Status:
        """The mode, and why."""
        ...

    @property
    def generation(self) -> Generation | None:
        """The plan in force."""
        ...

    @property
    def counters(self) -> EngineCounters:
        """The counters so far."""
        ...

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Why the last engine ended that was not requested to."""
        ...


class Requests(Protocol):
    """The requests for safe mode."""

    def active(self) -> Mapping[str, Request]:
        """Return every active request."""
        ...


class SchedulerWatch:
    """Compares the scheduler's state with that of the turn before."""

    def __init__(self, events: EventLog, scheduler: WatchedScheduler, requests: Requests) -> None:
        self._events = events
        self._scheduler = scheduler
        self._requests = requests
        self._status = scheduler.status
        self._number = 0
        self._total = 0
        self._counted: tuple[Counter[str], ...] = (Counter(), Counter(), Counter(), Counter())

    def look(self) -> None:
        """Record the changes since the last call."""
        scheduler = self._scheduler
        counters = scheduler.counters
        groups = (counters.reloads, counters.ejections, counters.swap_failures, counters.swaps)
        total = sum(sum(group.values()) for group in groups)  # they only grow
        if total != self._total:
            self._total = total
            self._record_counted(groups)
        generation = scheduler.generation
        number = generation.number if generation is not None else 0
        if number != self._number:
            self._record_generation(number)
        status = scheduler.status
        if status.reason != self._status.reason or status.mode is not self._status.mode:
            self._record_mode(status)

    def _record_counted(self, groups: tuple[Counter[str], ...]) -> None:
        recorded: tuple[EventKind, ...] = (
            kinds.ENGINE_RELOADED,
            kinds.ENGINE_EJECTED,
            kinds.SWAP_FAILED,
            kinds.ENGINE_SWAPPED,
        )
        diagnosis = self._scheduler.diagnosis
        cause = f"{diagnosis.summary}; {diagnosis.remedy}" if diagnosis is not None else ""
        for kind, now, before in zip(recorded, groups, self._counted, strict=True):
            failed = kind in (kinds.ENGINE_EJECTED, kinds.SWAP_FAILED)
            for name in _grown(now, before):
                self._events.record(kind.name, name, cause.rstrip("; ") if failed else "")
        self._counted = tuple(Counter(group) for group in groups)

    def _record_generation(self, number: int) -> None:
        if number:
            kind, reason = kinds.ENGINE_ATTACHED, self._scheduler.status.engine
        else:
            kind, reason = kinds.ENGINE_DETACHED, self._scheduler.status.detail
        self._events.record(kind.name, f"generation {number or self._number}", reason)
        self._number = number

    def _record_mode(self, status: Status) -> None:
        before, self._status = self._status, status
        if status.mode is Mode.SAFE_MODE:
            is_asked = status.reason == SafeModeReason.REQUESTED
            requesters = ", ".join(sorted(self._requests.active())) if is_asked else ""
            kind = kinds.SAFE_MODE_ENTERED.name
            self._events.record(kind, status.reason, status.detail, asked=AuditEntry(requesters))
        elif before.mode is Mode.SAFE_MODE:
            self._events.record(kinds.SAFE_MODE_LEFT.name, before.reason, f"now {status.mode}")
        elif Mode.OBSERVE_ONLY in (before.mode, status.mode):
            reason = ": ".join(filter(None, (status.reason, status.detail)))
            self._events.record(kinds.MODE_CHANGED.name, status.mode, reason)


def _grown(now: Counter[str], before: Counter[str]) -> Iterator[str]:
    for name, count in now.items():
        for _ in range(count - before[name]):
            yield name
