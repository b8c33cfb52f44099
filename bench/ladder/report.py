"""Makes tables and plots of records: ``python -m bench.ladder.report [--plots DIR] RECORDS ...``.

The tables are Markdown on standard output.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.ladder.loads import LOADS
from bench.ladder.measures import MEASURES, Json, Measure
from bench.ladder.plots import plots
from bench.ladder.rows import STOCK, Row, read, rows
from bench.ladder.servers import SERVERS
from bench.ladder.spreads import Spread

WITH_SPREAD = frozenset({"p99", "delay", "noise_wait"})
COMPARED = ("p50", "p99", "max", "wait_p50", "wait_p99", "delay")
WORSE_BY = 1.05
"""A figure counts as worse than stock's from a twentieth on."""
HAND_OVER_MS = 0.5
"""What the emulator may take to hand over between CPUs, with some margin (docs/ladder.md)."""
NONE = "-"
KEY = """A figure is stock's median over the arm's: with 2.0 the arm has half of stock's. With `~`
the runs of both overlap, so the difference is within the spread."""


def report(records: Sequence[Json]) -> str:
    """Return the tables of all loads and the comparison with the stock scheduler."""
    all_rows = rows(records)
    parts = [origin(records)]
    for load in dict.fromkeys(row.load for row in all_rows):
        of_load = [row for row in all_rows if row.load == load]
        known = {**LOADS, **SERVERS}
        summary = known[load].summary if load in known else "a load of another version"
        parts.append(f"### `{load}`: {summary}")
        parts += [latencies(of_load), prices(of_load)]
    parts.append(f"### Against the stock scheduler\n\n{comparison(all_rows)}")
    return "\n\n".join(parts)


def origin(records: Sequence[Json]) -> str:
    """Return what the records were made with, as a list."""
    kept = {
        "kernel": "kernel",
        "engine": "engine",
        "CPUs": "cpus",
        "clock": "clock",
        "boots": "boot",
        "seeds": "seed",
    }
    lines = [f"- {title}: {_listed(records, key)}" for title, key in kept.items()]
    for kind in ("plan", "profile"):
        named = {f"{each['arm']} {each[kind]}": None for each in records if each[kind]}
        lines.append(f"- hash of the {kind}: {', '.join(named) or NONE}")
    return "\n".join(lines)


def _listed(records: Iterable[Json], key: str) -> str:
    return ", ".join(str(each) for each in dict.fromkeys(each[key] for each in records) if each)


def latencies(of_load: Sequence[Row]) -> str:
    """Return what requests and served threads waited for, as a table of medians."""
    titles = ["level", "arm", "runs", *(MEASURES[name].title for name in COMPARED)]
    cells = [
        [str(row.level), row.arm, str(len(row.records)), *(_figure(row, name) for name in COMPARED)]
        for row in of_load
    ]
    return _table(titles, "--: | --- | --:" + " | --:" * len(COMPARED), cells)


def prices(of_load: Sequence[Row]) -> str:
    """Return what the arms cost and where threads ran, as a table of medians."""
    names = [
        name
        for name in MEASURES
        if name not in COMPARED and any(row.spread(name) for row in of_load)
    ]
    titles = ["level", "arm", *(MEASURES[name].title for name in names), "engine attached"]
    cells = [
        [str(row.level), row.arm, *(_figure(row, name) for name in names), _attached(row)]
        for row in of_load
    ]
    return _table(titles, "--: | ---" + " | --:" * len(names) + " | ---", cells)


def _attached(row: Row) -> str:
    if not row.is_kept:
        return "**not throughout**"
    return NONE if row.is_stock else "throughout"


def _table(titles: Sequence[str], alignment: str, rows_of_cells: Iterable[Sequence[str]]) -> str:
    bodies = [" | ".join(titles), alignment, *(" | ".join(cells) for cells in rows_of_cells)]
    return "\n".join(f"| {body} |" for body in bodies)


def _figure(row: Row, name: str) -> str:
    spread, measure = row.spread(name), MEASURES[name]
    if spread is None:
        return NONE
    shown = f"{spread.median:.{measure.places}f}"
    if name in WITH_SPREAD and len(spread.values) > 1:
        shown += f" ({spread.least:.{measure.places}f}-{spread.most:.{measure.places}f})"
    return shown


def comparison(all_rows: Sequence[Row]) -> str:
    """Return every arm against stock: a table of factors, then the losing cases."""
    titles = ["load", "level", "arm", *(MEASURES[name].title for name in COMPARED)]
    factors, losing = [], []
    for row, stock in _pairs(all_rows):
        cells = [against(MEASURES[name], row.spread(name), stock.spread(name)) for name in COMPARED]
        factors.append([row.load, str(row.level), row.arm, *cells])
        losing += list(losses(row, stock))
    listed = [f"- {line}" for line in losing] or ["- none"]
    table = _table(titles, "--- | --: | ---" + " | --:" * len(COMPARED), factors)
    return "\n".join([table, "", KEY, "", "Worse than stock by a twentieth or more:", "", *listed])


def _pairs(all_rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    stock = {(row.load, row.level): row for row in all_rows if row.arm == STOCK}
    for row in all_rows:
        if row.arm != STOCK and (row.load, row.level) in stock:
            yield row, stock[row.load, row.level]


def against(measure: Measure, own: Spread | None, stock: Spread | None) -> str:
    """Return the factor by which an arm is better than stock, with ``~`` within the spread."""
    if own is None or stock is None:
        return NONE
    smallest = 10.0**-measure.places
    if max(own.median, stock.median) < smallest:
        return "both 0"
    factor = max(stock.median, smallest) / max(own.median, smallest)
    return f"{'' if own.is_apart_from(stock) else '~ '}{factor:.{1 if factor < 100 else 0}f}"  # noqa: PLR2004 - from here on digits say nothing


def losses(row: Row, stock: Row) -> Iterator[str]:
    """Yield a line for each figure in which an arm is worse than stock."""
    for name in COMPARED:
        own, other, measure = row.spread(name), stock.spread(name), MEASURES[name]
        if own is None or other is None or own.median <= other.median * WORSE_BY:
            continue
        if own.median < 10.0**-measure.places:
            continue
        shown = f"{own.median:.{measure.places}f} against {other.median:.{measure.places}f}"
        sure = _certainty(row, measure, own, other)
        yield f"{row.load} {row.level}, {row.arm}: {measure.title} {shown}, {sure}"
    if row.unanswered:
        yield f"{row.load} {row.level}, {row.arm}: {row.unanswered} requests without an answer"


def _certainty(row: Row, measure: Measure, own: Spread, other: Spread) -> str:
    is_virtual = any(record["clock"] == "virtual" for record in row.records)
    is_latency = measure.title.endswith(", ms")
    if is_virtual and is_latency and own.median - other.median < HAND_OVER_MS:
        return "less than a hand-over between virtual CPUs"
    return "beyond the spread" if own.is_apart_from(other) else "within the spread"


def main() -> int:
    """Print the tables, and write the plots if a directory is given."""
    parser = argparse.ArgumentParser(prog="python -m bench.ladder.report", description=__doc__)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--plots", type=Path, help="directory for the SVG files")
    options = parser.parse_args()
    records = read(options.records)
    print(report(records))
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        for name, text in plots(rows(records)).items():
            (options.plots / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
