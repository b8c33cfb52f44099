"""Tables of a report for a terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import asdict

from temper_core.console import Column, Row, printable, table_of
from temper_plugin_tracer.trace.analysis.comparison import Change
from temper_plugin_tracer.trace.analysis.report import (
    Report,
    Share,
    SlowWakeUp,
    Subject,
    cpus_told,
)

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["change_table", "headline", "report_json", "report_tables"]

NAMED_BLOCKERS = 3


def report_json(report: Report) -> dict[str, Any]:
    """Return a report as JSON. All times are nanoseconds."""
    return asdict(report)


def headline(report: Report) -> str:
    """Return what a trace holds, in one line."""
    whole, threads = report.whole_threads, report.threads
    selected = f"{whole} of them selected and shown, " if whole < threads else ""
    line = (
        f"{report.length_ns / 1e9:.3f} s, {report.events} events, {threads} threads, {selected}"
        f"{cpus_told(report)}"
    )
    lost = sum(report.lost.values())
    if lost:
        line += f"; {lost} events were lost"
    if report.broken or report.unwoken:
        line += (
            f"; {report.broken} runs and {report.unwoken} wake-ups are incomplete: "
            "the trace has not all of their events"
        )
    if not report.knows_throttling:
        line += "; throttled threads look like waiting ones"
    if report.folded:
        line += f"; {report.folded} small shares are summed as others"
    return line


def report_tables(report: Report, level: str, by: str) -> "Group":
    """Return the tables of a report: subjects of *level*, blockers of the level *by*."""
    from rich.console import Group  # noqa: PLC0415 - slow, and for tables only
    from rich.text import Text  # noqa: PLC0415 - the same

    subjects = report.subjects[level]
    tables = [
        table_of(f"by {level}", _columns(report, level), [asdict(one) for one in subjects]),
        table_of(f"threads that ran while it waited, by {by}", _SHARES, _share_rows(subjects, by)),
        table_of("wakers and wakees", _EDGES, [asdict(edge) for edge in report.edges]),
        table_of("slowest wake-ups", _SLOWEST, [_slow_row(wake) for wake in report.slowest]),
    ]
    shown = (table for table in tables if table is not None)
    return Group(Text(printable(headline(report))), *shown)


def change_table(changes: Sequence[Change], level: str) -> "Group":
    """Return the table of a comparison."""
    from rich.console import Group  # noqa: PLC0415 - slow, and for tables only
    from rich.text import Text  # noqa: PLC0415 - the same

    table = table_of(f"before and after, by {level}", _CHANGES, [asdict(one) for one in changes])
    return Group(table if table is not None else Text("no thread ran or waited"))


def _ms(ns: float | None) -> str | None:
    return None if ns is None else f"{ns / 1e6:.3f}"


def _time(*path: str) -> Any:  # noqa: ANN401 - a function of a row
    def read(row: Row) -> object:
        value: Any = row
        for key in path:
            value = value[key]
        return _ms(value)

    return read


def _columns(report: Report, level: str) -> tuple[Column, ...]:
    columns: list[Column] = [
        (level, lambda row: row["name"]),
        ("run ms", _time("run_ns")),
        ("wait ms", _time("wait_ns")),
        ("wait p50", _time("waits", "p50_ns")),
        ("wait p99", _time("waits", "p99_ns")),
        ("wait max", _time("waits", "longest_ns")),
        ("run p50", _time("slices", "p50_ns")),
        ("wake-ups", lambda row: row["wakeups"]),
        ("preempted", lambda row: row["preemptions"]),
        ("migrations", lambda row: row["migrations"]),
    ]
    if level == "thread":
        columns.insert(1, ("of", lambda row: row["place"] or None))
    else:
        columns.insert(1, ("threads", lambda row: row["threads"]))
    subjects = report.subjects[level]
    if any(one.shared_ns is not None for one in subjects):
        columns.append(("sibling busy ms", _time("shared_ns")))
    if any(one.outside_ns is not None for one in subjects):
        columns.append(("outside plan ms", _time("outside_ns")))
    return tuple(columns)


def _share_rows(subjects: Sequence[Subject], by: str) -> list[Row]:
    return [
        {"name": subject.name if not number else "", **asdict(share)}
        for subject in subjects
        for number, share in enumerate(subject.blockers.get(by, ()))
    ]


def _slow_row(wake: SlowWakeUp) -> Mapping[str, Any]:
    chain = " < ".join(
        f"{link.waker}" + (f" ({_ms(link.wait_ns)} ms)" if number else "")
        for number, link in enumerate(wake.chain)
    )
    behind = ", ".join(_named(share) for share in wake.blockers[:NAMED_BLOCKERS])
    return {**asdict(wake), "behind": behind, "woken_by": chain}


def _named(share: Share) -> str:
    return f"{share.party} {share.percent:.1f} %"


_SHARES: tuple[Column, ...] = (
    ("waiter", lambda row: row["name"]),
    ("behind", lambda row: row["party"]),
    ("kind", lambda row: row["kind"]),
    ("relation", lambda row: row["relation"] or None),
    ("ms", _time("ns")),
    ("%", lambda row: f"{row['percent']:.1f}"),
)
_EDGES: tuple[Column, ...] = (
    ("waker", lambda row: row["waker"]),
    ("wakes", lambda row: row["woken"]),
    ("times", lambda row: row["count"]),
    ("wait ms", _time("waits_ns")),
    ("longest ms", _time("longest_ns")),
)
_SLOWEST: tuple[Column, ...] = (
    ("woken", lambda row: row["woken"]),
    ("at ms", _time("at_ns")),
    ("waited ms", _time("wait_ns")),
    ("CPU", lambda row: row["cpu"]),
    ("behind", lambda row: row["behind"]),
    ("woken by", lambda row: row["woken_by"]),
)


def _pair(name: str, scale: float, digits: int) -> Any:  # noqa: ANN401 - a function of a row
    def read(row: Row) -> object:
        before, after = row["before"], row["after"]
        return " > ".join(
            "-" if one is None or one[name] is None else f"{one[name] / scale:.{digits}f}"
            for one in (before, after)
        )

    return read


_CHANGES: tuple[Column, ...] = (
    ("name", lambda row: row["name"]),
    ("CPUs run", _pair("run_share", 1, 3)),
    ("CPUs waited", _pair("wait_share", 1, 3)),
    ("wait p50 ms", _pair("wait_p50_ns", 1e6, 3)),
    ("wait p99 ms", _pair("wait_p99_ns", 1e6, 3)),
    ("wait max ms", _pair("longest_wait_ns", 1e6, 3)),
    ("wake-ups/s", _pair("wakeups_per_s", 1, 0)),
    ("migrations/s", _pair("migrations_per_s", 1, 0)),
)
