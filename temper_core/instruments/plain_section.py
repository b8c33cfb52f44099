"""The section of one instrument as plain JSON, made anew only where it has changed."""

import json
from collections.abc import Mapping
from typing import Any

from temper_core.plain_json import plain_value
from temper_core.records.instruments import OpenInstrument
from temper_core.records.snapshots import Snapshot

LONGEST_INTEGER = 308
"""Digits; beyond them readers of JSON, whose numbers are doubles, see infinity."""


class PlainSection:
    """Asks one instrument for its section; what is the same as before is not copied again."""

    def __init__(self) -> None:
        self._text = ""
        self._plain: Mapping[str, Any] = {}

    def of(
        self, instrument: OpenInstrument, snapshot: Snapshot
    ) -> tuple[Mapping[str, Any], int] | None:
        """Return the section as plain JSON, and its size; None where there is none."""
        content = instrument.section(snapshot)
        if content is None:
            return None
        if not isinstance(content, Mapping):
            raise TypeError(f"a section is a mapping, not {type(content).__name__}")
        text = _text_of(content)
        if text != self._text:
            self._plain, self._text = json.loads(text, parse_int=_integer), text
        return self._plain, len(text)


def _text_of(content: Mapping[str, Any]) -> str:
    """Return *content* as JSON; what JSON cannot say becomes null or text, which takes longer."""
    try:
        return json.dumps(content, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        return json.dumps(plain_value(content), allow_nan=False)


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= LONGEST_INTEGER else None
