"""Generates the tables of the failures from their records. Cog writes them into their page."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.failures import attaching
from bench.failures.failures import FAILURES
from bench.failures.record import read
from bench.failures.windows import Json

RECORDS = Path(__file__).parents[1] / "bench/failures/records"
NONE = "-"
DIGITS = 12


def records() -> list[Json]:
    """Return the committed records, in the order of the failures."""
    order = list(FAILURES)
    found = read(sorted(RECORDS.glob("*.jsonl")))
    return sorted(found, key=lambda each: order.index(each["failure"]))


def failures_table() -> str:
    """Return what happens in each failure."""
    rows = [[f"`{name}`", each.summary] for name, each in FAILURES.items()]
    lines = [["failure", "what happens"], ["---", "---"], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def times_table() -> str:
    """Return when the stock scheduler and an engine came, of each record."""
    rows = []
    for record in records():
        seen = record["timeline"]
        times = [_seconds(seen[key]) for key in ("stock_after_s", "stock_s", "back_after_s")]
        rows.append([_named(record), *times, str(seen["attaches"]), str(record["unanswered"])])
    head = ["failure", "to the stock scheduler", "on it", "back", "attaches", "unanswered"]
    return _table(head, rows)


def latency_table() -> str:
    """Return the latencies before, on the stock scheduler, with an engine, and the worst second."""
    rows = []
    for record in records():
        phases, worst = record["phases"], record["worst"]
        rows.append(
            [
                _named(record),
                *(_latency(phases[kind]) for kind in ("before", "stock", "engine")),
                f"{worst['p99']:.1f} / {worst['max']:.1f}",
                f"{worst['at_s']:.0f} s",
            ]
        )
    head = ["p99 / longest, ms", "before", "stock", "an engine", "worst second", "which begins at"]
    return _table(head, rows)


def origins() -> str:
    """Return what the records were made with, as a list."""
    found = records()
    notes, engine = (_all(found, f"{key}_sha256", DIGITS) for key in ("kernel_notes", "engine"))
    lines = [
        f"- kernel: {_all(found, 'kernel')}, SHA-256 of its notes {notes}",
        f"- engine: {_all(found, 'engine')}, SHA-256 {engine}",
        f"- hash of the plan: {_all(found, 'plan')} before, {_all(found, 'plan_after')} after",
        f"- CPUs: {_all(found, 'cpus')}. Clock: {_all(found, 'clock')}",
        f"- boots: {_all(found, 'boot')}",
    ]
    return "\n".join(lines)


def missing() -> str:
    """Return the failures without a record, in a sentence."""
    played = {record["failure"] for record in records()}
    names = [f"`{name}`" for name in FAILURES if name not in played]
    return f"Without a record: {', '.join(names)}." if names else "Every failure has a record."


def attaching_table() -> str:
    """Return what the CPUs ran around the attaching of an engine, by the committed trace."""
    (trace,) = RECORDS.glob("*.trace.gz")
    return "\n".join(attaching.table(attaching.read(trace)))


def _named(record: Json) -> str:
    return f"`{record['failure']}`"


def _seconds(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f} s"


def _latency(figures: Json) -> str:
    if not figures["requests"]:
        return NONE
    return f"{figures['p99']:.1f} / {figures['max']:.1f}"


def _all(found: Iterable[Json], key: str, digits: int | None = None) -> str:
    return ", ".join(dict.fromkeys(str(each[key])[:digits] for each in found)) or NONE


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
