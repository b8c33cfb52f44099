"""The section of one instrument as plain JSON, rebuilt only after a change."""

import json
from collections.abc import Mapping
from typing import Any

from temper_core.plain_json import plain_value
from temper_core.records.instruments import OpenInstrument
from temper_core.records.read_only import ReadOnlyDict
from temper_core.records.snapshots import Snapshot

LONGEST_INTEGER = 308
"""In digits. JSON readers with double-precision numbers read a longer integer as infinity."""


class PlainSection:
    """Reads the section of one instrument. An unchanged section is not copied again."""

    def __init__(self) -> None:
        self._text = ""
        self._plain: Mapping[str, Any] = {}

    def of(
        self, instrument: OpenInstrument, snapshot: Snapshot
    ) -> tuple[Mapping[str, Any], int] | None:
        """Return the section as plain JSON and its size in bytes, None if it has none.

        Raises TypeError if the section is not a mapping.
        """
        content = instrument.section(snapshot)
        if content is None:
            return None
        if not isinstance(content, Mapping):
            raise TypeError(f"a section is a mapping, not {type(content).__name__}")
        text = _text_of(content)
        if text != self._text:
            plain = json.loads(text, parse_int=_integer, object_hook=ReadOnlyDict)
            self._plain, self._text = plain, text
        return self._plain, len(text)


def _text_of(content: Mapping[str, Any]) -> str:
    """Return *content* as JSON. Values without a JSON form become null or text, more slowly."""
    try:
        return json.dumps(content, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        return json.dumps(plain_value(content), allow_nan=False)


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= LONGEST_INTEGER else None
