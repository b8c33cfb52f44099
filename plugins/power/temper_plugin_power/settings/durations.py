"""Durations in settings: ``20s``, ``5m``, ``1h``."""

import re
from typing import Any

from temper_core import setting

UNIT_S = {"s": 1, "m": 60, "h": 3600}
_WRITTEN = re.compile(r"([1-9][0-9]{0,5})([smh])")


def duration(default: str, meaning: str) -> Any:  # noqa: ANN401 - attrs' own way
    """Declare a setting that is a duration, with its default and a sentence."""
    return setting(default, meaning, validator=_check)


def seconds(text: str) -> float:
    """Return the seconds of a duration. Raises ValueError for any other text."""
    matched = _WRITTEN.fullmatch(text)
    if matched is None:
        raise ValueError(f"must be a duration such as 30s, 5m or 1h, not {text!r}")
    return float(int(matched[1]) * UNIT_S[matched[2]])


def _check(_: object, __: object, value: str) -> None:
    seconds(value)
