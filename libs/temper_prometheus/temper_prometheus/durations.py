"""Durations as PromQL writes them."""

import re

_DURATION = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")
MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S


def duration_s(text: str) -> int:
    """Return the seconds of *text* such as ``90s``, ``5m`` or ``1h30m``. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        raise ValueError(f"must be a duration such as 30s, 5m or 1h30m, not {text[:20]!r}")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * HOUR_S + minutes * MINUTE_S + seconds


def as_duration(seconds: int) -> str:
    """Return whole *seconds* as PromQL writes them."""
    return f"{seconds}s"
