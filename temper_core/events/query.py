"""Queries for events: after a number or a moment, of some kinds, up to a limit."""

import re
import time
from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from temper_core.errors import InputError
from temper_core.records.events import Event

MOST_EVENTS = 10_000
UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_AGE = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_KINDS = re.compile(r"[a-z0-9_]{1,63}(,[a-z0-9_]{1,63}){0,63}")

PARAMETERS: Mapping[str, str] = {
    "since": "An event's number, for those after it, or an age such as 90s, 10m, 2h, 3d.",
    "kind": "Kinds of events, separated by commas; all if absent.",
    "limit": f"The largest number of events, the newest, 1 to {MOST_EVENTS}.",
}
STREAM_PARAMETERS = {name: PARAMETERS[name] for name in ("since", "kind")}


@frozen
class Query:
    """A selection of events. ``after`` is a number, ``from_s`` a moment of the wall clock."""

    after: int = 0
    from_s: float = 0.0
    kinds: frozenset[str] = frozenset()
    limit: int = MOST_EVENTS

    def takes(self, event: Event) -> bool:
        """Whether *event* matches by time and kind."""
        return event.at >= self.from_s and (not self.kinds or event.kind in self.kinds)

    def chosen(self, events: Iterable[Event]) -> list[Event]:
        """Return the newest ``limit`` of the matching *events*, oldest first."""
        return [event for event in events if self.takes(event)][-self.limit :]


def read_query(parameters: Mapping[str, str], wall: Callable[[], float] = time.time) -> Query:
    """Read the parameters of a request. Raise InputError for an invalid one."""
    after, from_s = _since(parameters.get("since", ""), wall)
    kinds, limit = _kinds(parameters.get("kind", "")), _limit(parameters.get("limit", ""))
    return Query(after, from_s, kinds, limit)


def _since(text: str, wall: Callable[[], float]) -> tuple[int, float]:
    if not text:
        return 0, 0.0
    if _NUMBER.fullmatch(text):
        return int(text), 0.0
    if age := _AGE.fullmatch(text):
        return 0, wall() - int(age[1]) * UNIT_S[age[2]]
    raise InputError(f"since: must be an event's number or an age such as 10m, not {text[:40]!r}")


def _kinds(text: str) -> frozenset[str]:
    if text and not _KINDS.fullmatch(text):
        raise InputError(f"kind: must be kinds separated by commas, not {text[:80]!r}")
    return frozenset(text.split(",")) if text else frozenset()


def _limit(text: str) -> int:
    if not text:
        return MOST_EVENTS
    if not (_NUMBER.fullmatch(text) and 1 <= int(text) <= MOST_EVENTS):
        raise InputError(f"limit: must be a whole number from 1 to {MOST_EVENTS}")
    return int(text)
