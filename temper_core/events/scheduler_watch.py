"""Events of the scheduler: its mode, and every engine that came, went, or failed."""

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
    """What is compared of the scheduler."""

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
        """What was counted so far."""
        ...

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Why the last engine ended that nobody had asked to."""
        ...


class Requests(Protocol):
    """The requests for safe mode."""

    def active(self) -> Mapping[str, Request]:
        """Return every request that stands."""
        ...


class SchedulerWatch:
    """Compares the scheduler with what it was in the turn before."""

    def __init__(self, events: EventLog, scheduler: WatchedScheduler, requests: Requests) -> None:
        self._events = events
        self._scheduler = scheduler
        self._requests = requests
        self._status = scheduler.status
        self._number = 0
        self._total = 0
        self._counted: tuple[Counter[str], ...] = (Counter(), Counter(), Counter(), Counter())

    def look(self) -> None:
        """Record what has changed since the last look."""
        scheduler = self._scheduler
        counters = scheduler.counters
        counted = (counters.reloads, counters.ejections, counters.swap_failures, counters.swaps)
        total = sum(sum(each.values()) for each in counted)  # they only grow
        if total != self._total:
            self._total = total
            self._record_counted(counted)
        generation = scheduler.generation
        number = generation.number if generation is not None else 0
        if number != self._number:
            self._record_generation(number)
        status = scheduler.status
        if status.reason != self._status.reason or status.mode is not self._status.mode:
            self._record_mode(status)

    def _record_counted(self, counted: tuple[Counter[str], ...]) -> None:
        recorded: tuple[EventKind, ...] = (
            kinds.ENGINE_RELOADED,
            kinds.ENGINE_EJECTED,
            kinds.SWAP_FAILED,
            kinds.ENGINE_SWAPPED,
        )
        diagnosis = self._scheduler.diagnosis
        why = f"{diagnosis.summary}; {diagnosis.remedy}" if diagnosis is not None else ""
        for kind, now, before in zip(recorded, counted, self._counted, strict=True):
            failed = kind in (kinds.ENGINE_EJECTED, kinds.SWAP_FAILED)
            for name in _grown(now, before):
                self._events.record(kind.name, name, why.rstrip("; ") if failed else "")
        self._counted = tuple(Counter(each) for each in counted)

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
            who = ", ".join(sorted(self._requests.active())) if is_asked else ""
            kind = kinds.SAFE_MODE_ENTERED.name
            self._events.record(kind, status.reason, status.detail, asked=AuditEntry(who))
        elif before.mode is Mode.SAFE_MODE:
            self._events.record(kinds.SAFE_MODE_LEFT.name, before.reason, f"now {status.mode}")
        elif Mode.OBSERVE_ONLY in (before.mode, status.mode):
            why = ": ".join(filter(None, (status.reason, status.detail)))
            self._events.record(kinds.MODE_CHANGED.name, status.mode, why)


def _grown(now: Counter[str], before: Counter[str]) -> Iterator[str]:
    for name, count in now.items():
        for _ in range(count - before[name]):
            yield name
