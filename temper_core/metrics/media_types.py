"""Which of the two formats of a scrape a scraper would rather have."""

from collections.abc import Iterator

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_VERSIONS = ("", "0.0.1", "1.0.0")
"""Of OpenMetrics: 0.0.1 is how 1.0.0 was called before it was done."""


def media_type_for(accept: str) -> str:
    """Return what suits *accept* best: OpenMetrics only where it is named (RFC 9110, 12.5.1)."""
    weights = dict.fromkeys((PLAIN, OPENMETRICS), 0.0)
    for media_type, weight in _accepted(accept):
        weights[media_type] = max(weights[media_type], weight)
    wins = 0 < weights[OPENMETRICS] >= weights[PLAIN]
    return OPENMETRICS if wins else PLAIN


def _accepted(accept: str) -> Iterator[tuple[str, float]]:
    """Yield the formats that are named, each with its weight. What makes no sense has none."""
    for part in accept.lower().split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        given = dict(piece.partition("=")[::2] for piece in rest)
        if name == "text/plain":
            yield PLAIN, _weight(given.get("q", "1"))
        elif name == "application/openmetrics-text" and given.get("version", "") in _VERSIONS:
            yield OPENMETRICS, _weight(given.get("q", "1"))


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
