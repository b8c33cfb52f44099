"""Chooses the format of a scrape from the Accept header."""

from collections.abc import Iterator

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_VERSIONS = ("", "0.0.1", "1.0.0")
"""Versions of OpenMetrics. 0.0.1 is the draft name of 1.0.0."""


def media_type_for(accept: str) -> str:
    """Return the media type *accept* prefers: OpenMetrics only if named (RFC 9110, 12.5.1)."""
    weights = dict.fromkeys((PLAIN, OPENMETRICS), 0.0)
    for media_type, weight in _accepted(accept):
        weights[media_type] = max(weights[media_type], weight)
    wins = 0 < weights[OPENMETRICS] >= weights[PLAIN]
    return OPENMETRICS if wins else PLAIN


def _accepted(accept: str) -> Iterator[tuple[str, float]]:
    """Yield the formats that are named, each with its weight. A malformed weight is 0."""
    for part in accept.lower().split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        parameters = dict(piece.partition("=")[::2] for piece in rest)
        if name == "text/plain":
            yield PLAIN, _weight(parameters.get("q", "1"))
        elif name == "application/openmetrics-text" and parameters.get("version", "") in _VERSIONS:
            yield OPENMETRICS, _weight(parameters.get("q", "1"))


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
