"""The last window of wake-ups as rows: delays between threads, wake-ups, and waiting times.

All are in one table, so that they share a pane: the thread, what happened, the other thread, how
often, how long.
"""

from collections.abc import Callable, Iterator, Sequence

from temper_core.observed import Row, count, number, rows, table, text
from temper_plugin_console.top.columns import Column

DELAYED, WOKEN, WAITED = "delayed by", "woken by", "waits"
UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))
MICROSECONDS = 1e6
NOBODY = "an interrupt"


def window_of(document: Row) -> Row:
    """Return the last window of an observation, empty if none was recorded."""
    return table(table(document, "sections"), "tracer")


def wait_rows(window: Row) -> list[Row]:
    """Return the rows of *window*, the section ``tracer``, none if it is empty."""
    return [*_blockings(window), *_edges(window), *_histograms(window)]


def duration_text(seconds: float | None) -> str:
    """Return a time in the largest unit in which it is at least one."""
    if seconds is None:
        return "-"
    for scale, unit in UNITS:
        if seconds * MICROSECONDS >= scale:
            return f"{seconds * MICROSECONDS / scale:.1f} {unit}"
    return "0"


def _blockings(window: Row) -> Iterator[Row]:
    for blocking in rows(window, "blockings"):
        yield {
            **_party("who", table(blocking, "waiter")),
            "what": DELAYED,
            **_party("other", table(blocking, "runner")),
            "times": count(blocking, "waits"),
            "waited_s": number(blocking, "waited_s"),
        }


def _edges(window: Row) -> Iterator[Row]:
    for edge in rows(window, "edges"):
        yield {
            **_party("who", table(edge, "wakee")),
            "what": WOKEN,
            **_party("other", table(edge, "waker")),
            "times": count(edge, "wakes"),
        }


def _party(role: str, party: Row) -> Row:
    name = text(party, "comm") or (NOBODY if role == "other" else "")
    return {role: name, {"who": "whose", "other": "others"}[role]: text(party, "pod")}


def _histograms(window: Row) -> Iterator[Row]:
    for histogram in rows(window, "waits"):
        bounds = ", ".join(
            f"{percentile} < {duration_text(bound / MICROSECONDS)}"
            for percentile in ("p50", "p99")
            if (bound := number(histogram, f"{percentile}_under_us")) is not None
        )
        yield {
            "who": text(histogram, "subject"),
            "what": WAITED,
            "other": bounds,
            "times": count(histogram, "waits"),
            "waited_s": number(histogram, "total_s"),
        }


def _text(key: str) -> Callable[[Row], str]:
    return lambda row: text(row, key)


def _times(row: Row) -> str:
    return str(count(row, "times") or 0)


WAITS: Sequence[Column] = (
    Column("thread", _text("who"), least=10),
    Column("pod", _text("whose"), least=8, rank=1),
    Column("what", _text("what")),
    Column("other", _text("other"), least=10),
    Column("whose", _text("others"), least=8, rank=2),
    Column("times", _times, right=True),
    Column("waited", lambda row: duration_text(number(row, "waited_s")), right=True),
)
