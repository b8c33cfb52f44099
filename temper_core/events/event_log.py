"""The log of events in memory: typed, in order, the newest of each lane."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice, takewhile

from attrs import frozen

from temper_core.errors import InputError
from temper_core.events.document import plain_line
from temper_core.events.kinds import AGENT, EVENTS_DROPPED, KINDS
from temper_core.events.lanes import PER_SECOND, Lane
from temper_core.records.events import LONGEST_REASON, LONGEST_SUBJECT, Event, EventKind

MOST_KINDS = 32
"""Kinds that one instrument may declare."""
MOST_LANES = 256
"""Lanes that a file may bring in."""


@frozen
class AuditEntry:
    """The requester of an event, and the outcome of the request."""

    requester: str = ""
    outcome: str = ""


UNASKED = AuditEntry()


class EventLog:
    """The events of this agent. Any thread may call every method, and only ``wait`` waits.

    A lane holds the events of one of the agent's own kinds, or of one instrument. It keeps its
    newest events independently of other lanes. Events above its rate are only counted.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._clock = clock
        self._news = threading.Condition()
        self._kinds: dict[str, Mapping[str, EventKind]] = {AGENT: _by_name(KINDS)}
        self._lanes: dict[str, Lane] = {}
        self._counts: Counter[str] = Counter()
        self._last = 0
        self._is_closed = False
        self._has_dropped = False

    @property
    def last(self) -> int:
        """The number of the newest event, 0 before the first."""
        return self._last

    @property
    def is_closed(self) -> bool:
        """Whether the agent is ending, and streams have to end."""
        return self._is_closed

    @property
    def kinds(self) -> tuple[tuple[str, EventKind], ...]:
        """Every kind with its source, the agent's own first."""
        return tuple((source, kind) for source, own in self._kinds.items() for kind in own.values())

    def declare(self, source: str, kinds: Iterable[EventKind]) -> str:
        """Let the instrument *source* record *kinds*. Return the problems of refused ones."""
        offered = _by_name(kinds)
        fitting = {name: kind for name, kind in offered.items() if name not in self._kinds[AGENT]}
        problems = [f"{name} is a kind of the agent's own" for name in offered.keys() - fitting]
        if len(fitting) > MOST_KINDS:
            problems.append(f"{len(fitting) - MOST_KINDS} kinds are more than {MOST_KINDS}")
        with self._news:
            self._kinds[source] = dict(islice(fitting.items(), MOST_KINDS))
        return "; ".join(sorted(problems))

    def record(
        self,
        kind: str,
        subject: str = "",
        reason: str = "",
        *,
        source: str = "",
        asked: AuditEntry = UNASKED,
        level: str = "",
    ) -> None:
        """Record an event now. *level* defaults to that of the kind.

        Without a *source* it is an event of the agent's own. Raises InputError for a kind that
        the source has not declared, and for a subject or reason that is not text.
        """
        source = source or AGENT
        declared = self._declared(source, kind)
        _require_text(subject, reason)
        with self._news:
            lane = self._lane(kind if source == AGENT else source)
            self._counts[kind] += 1
            if not lane.takes(self._clock()):
                self._has_dropped = True
                return
        subject = plain_line(subject, LONGEST_SUBJECT)
        reason = plain_line(reason, LONGEST_REASON)
        requester = plain_line(asked.requester, LONGEST_SUBJECT)
        outcome = plain_line(asked.outcome, LONGEST_REASON)
        with self._news:
            self._last += 1
            event = Event(
                self._last,
                self._wall(),
                kind,
                subject,
                reason,
                source,
                requester,
                outcome,
                level or declared.level,
            )
            lane.kept.append(event)
            self._news.notify_all()

    def record_dropped(self) -> None:
        """Record the number of dropped events, for each lane every ``TOLD_EVERY_S`` at most."""
        if not self._has_dropped:
            return
        with self._news:
            now = self._clock()
            dropped = {name: lane.dropped_by(now) for name, lane in self._lanes.items()}
            self._has_dropped = any(lane.dropped for lane in self._lanes.values())
        for name, count in dropped.items():
            if count:
                reason = f"{count} events, more than {PER_SECOND:g} a second"
                self.record(EVENTS_DROPPED.name, name, reason)

    def remember(self, events: Iterable[Event]) -> None:
        """Start with *events* of an earlier run, oldest first. The next number follows theirs."""
        with self._news:
            for event in events:
                name = event.kind if event.source == AGENT else event.source
                if name in self._lanes or len(self._lanes) < MOST_LANES:
                    self._lane(name).kept.append(event)
                self._last = max(self._last, event.number)

    def after(self, number: int = 0) -> tuple[Event, ...]:
        """Return the kept events after *number*, oldest first."""
        with self._news:
            events = [
                event
                for lane in self._lanes.values()
                for event in takewhile(lambda event: event.number > number, reversed(lane.kept))
            ]
        return tuple(sorted(events, key=lambda event: event.number))

    def newest(self, most: int) -> tuple[Event, ...]:
        """Return at most *most* events of each lane, oldest first."""
        with self._news:
            events = [
                event
                for lane in self._lanes.values()
                for event in islice(reversed(lane.kept), most)
            ]
        return tuple(sorted(events, key=lambda event: event.number))

    def counts(self) -> Mapping[str, int]:
        """Return the number of events of each kind since the start, dropped ones included."""
        with self._news:
            return dict(self._counts)

    def wait(self, number: int, timeout_s: float | None = None) -> bool:
        """Wait for an event after *number*, or the end of the log. Return whether there is one."""
        with self._news:
            self._news.wait_for(lambda: self._last > number or self._is_closed, timeout_s)
            return self._last > number

    def close(self) -> None:
        """End every wait. Later events are still kept."""
        with self._news:
            self._is_closed = True
            self._news.notify_all()

    def _declared(self, source: str, kind: object) -> EventKind:
        own_kinds = self._kinds.get(source, {})
        declared = own_kinds.get(kind) if isinstance(kind, str) else None
        if declared is None:
            names = ", ".join(own_kinds) or "none"
            raise InputError(f"{source} declares no event kind {kind!r:.100}; it has {names}")
        return declared

    def _lane(self, name: str) -> Lane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane()
        return lane


def _by_name(kinds: Iterable[EventKind]) -> dict[str, EventKind]:
    return {kind.name: kind for kind in kinds}


def _require_text(*texts: object) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"an event is described by text, not by {type(text).__name__}")
