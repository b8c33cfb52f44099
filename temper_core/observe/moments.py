"""Moments in the format of the JSON documents."""

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Return wall-clock seconds as RFC 3339 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
