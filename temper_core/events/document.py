"""Events as JSON, in answers and in the lines of the file. Reading validates every field."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from temper_core.records.events import LONGEST_REASON, LONGEST_SUBJECT, Event, EventLevel

_TEXTS = {
    "kind": 64,
    "subject": LONGEST_SUBJECT,
    "reason": LONGEST_REASON,
    "source": 64,
    "requester": LONGEST_SUBJECT,
    "outcome": LONGEST_REASON,
    "level": 16,
}
"""The longest text of each field, in characters."""
_LEVELS = frozenset(EventLevel)
LARGEST_NUMBER = 2**52
LATEST_S = 2**32
ELLIPSIS = "…"


def plain_line(text: str, limit: int) -> str:
    """Return *text* as one printable line of at most *limit* characters."""
    text = text[: 2 * limit]  # bounds the cost of a long text
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}{ELLIPSIS}"


def event_document(event: Event) -> dict[str, Any]:
    """Return *event* as JSON, every field included."""
    return attrs.asdict(event)


def event_line(event: Event) -> bytes:
    """Return *event* as a line of the file, without its empty fields."""
    fields = {key: value for key, value in event_document(event).items() if value != ""}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_line(line: bytes) -> Event | None:
    """Parse one line of the file. Return None if it is damaged."""
    try:
        table = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(table, dict) or not _has_moment(table) or not _has_texts(table):
        return None
    return Event(**table)


def _has_moment(table: Mapping[str, Any]) -> bool:
    number, at = table.get("number"), table.get("at")
    if type(number) is not int or not 0 < number < LARGEST_NUMBER:
        return False
    return isinstance(at, int | float) and not isinstance(at, bool) and 0 <= at < LATEST_S


def _has_texts(table: Mapping[str, Any]) -> bool:
    texts = {key: value for key, value in table.items() if key not in {"number", "at"}}
    fit = all(_fits(value, _TEXTS.get(key, -1)) for key, value in texts.items())
    return fit and bool(texts.get("kind")) and texts.get("level", "info") in _LEVELS


def _fits(value: object, limit: int) -> bool:
    return isinstance(value, str) and len(value) <= limit and value.isprintable()
