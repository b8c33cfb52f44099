"""The last window of wake-ups as rows: who was delayed by whom, who woke whom, how long one waits.

All are one table, so that they share a pane: *who*, *what happened*, *the other*, how often, how
long.
"""

from collections.abc import Callable, Iterator, Sequence

from temper_core.observed import Row, count, number, rows, table, text
from temper_plugin_console.top.columns import Column

DELAYED, WOKEN, WAITED = "delayed by", "woken by", "waits"
UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))
MICROSECONDS = 1e6
NOBODY = "an interrupt"


def window_of(document: Row) -> Row:
    """Return the last window of an observation. Empty where none was watched."""
    return table(table(document, "sections"), "tracer")


def wait_rows(window: Row) -> list[Row]:
    """Return the rows of the section ``tracer``. None where no window was watched."""
    found = [*_blockings(window), *_edges(window), *_histograms(window)]
    return list(found)


def duration_text(seconds: float | None) -> str:
    """Write a time in the largest unit in which it is not below one."""
    if seconds is None:
        return "-"
    for scale, unit in UNITS:
        if seconds * MICROSECONDS >= scale:
            return f"{seconds * MICROSECONDS / scale:.1f} {unit}"
    return "0"


def _blockings(window: Row) -> Iterator[Row]:
    for each in rows(window, "blockings"):
        yield {
            **_party("who", table(each, "waiter")),
            "what": DELAYED,
            **_party("other", table(each, "runner")),
            "times": count(each, "waits"),
            "waited_s": number(each, "waited_s"),
        }


def _edges(window: Row) -> Iterator[Row]:
    for each in rows(window, "edges"):
        yield {
            **_party("who", table(each, "wakee")),
            "what": WOKEN,
            **_party("other", table(each, "waker")),
            "times": count(each, "wakes"),
        }


def _party(role: str, party: Row) -> Row:
    name = text(party, "comm") or (NOBODY if role == "other" else "")
    return {role: name, {"who": "whose", "other": "others"}[role]: text(party, "pod")}


def _histograms(window: Row) -> Iterator[Row]:
    for each in rows(window, "waits"):
        bounds = ", ".join(
            f"{percentile} < {duration_text(bound / MICROSECONDS)}"
            for percentile in ("p50", "p99")
            if (bound := number(each, f"{percentile}_under_us")) is not None
        )
        yield {
            "who": text(each, "subject"),
            "what": WAITED,
            "other": bounds,
            "times": count(each, "waits"),
            "waited_s": number(each, "total_s"),
        }


def _text(key: str) -> Callable[[Row], str]:
    return lambda row: text(row, key)


def _times(row: Row) -> str:
    return str(count(row, "times") or 0)


WAITS: Sequence[Column] = (
    Column("thread", _text("who"), least=10),
    Column("pod", _text("whose"), least=8, rank=1),
    Column("what", _text("what")),
    Column("whom", _text("other"), least=10),
    Column("whose", _text("others"), least=8, rank=2),
    Column("times", _times, right=True),
    Column("waited", lambda row: duration_text(number(row, "waited_s")), right=True),
)
