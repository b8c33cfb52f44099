"""Events as JSON, in answers and in the lines of the file. Reading takes nothing on trust."""

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
    text = text[: 2 * limit]  # what is cut off costs nothing
    if not text.isprintable():
        text = "".join(each if each.isprintable() else " " for each in text)
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}{ELLIPSIS}"


def event_document(event: Event) -> dict[str, Any]:
    """Return *event* as JSON, every field included."""
    return attrs.asdict(event)


def event_line(event: Event) -> bytes:
    """Return *event* as a line of the file. A field that is empty is left out."""
    told = {key: value for key, value in event_document(event).items() if value != ""}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_line(line: bytes) -> Event | None:
    """Read one line of the file; None where it is damaged."""
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
