"""The table of records: ``python -m bench.enforcing.report RECORDS``."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.ladder.__main__ import FORMAT
from bench.ladder.agent import Json
from bench.record_files import read_records

OBSERVING, ENFORCING = "observing", "enforcing"
HEAD = (
    "| threads | a container is replaced | observing | enforcing | ratio | of it steering |",
    "| --: | --- | --: | --: | --: | --: |",
)


def pairs(records: Iterable[Json]) -> Iterator[tuple[Json, Json]]:
    """Yield the records of the observing and of the enforcing agent that ran side by side."""
    known: dict[tuple[int, float], dict[str, Json]] = {}
    for record in records:
        place = record["threads"], record["churn_s"]
        known.setdefault(place, {})[record["arm"]] = record
    for by_arm in known.values():
        yield by_arm[OBSERVING], by_arm[ENFORCING]


def table(records: Iterable[Json]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield from HEAD
    for observing, enforcing in pairs(records):
        churn_s = enforcing["churn_s"]
        ratio = enforcing["agent_percent"] / observing["agent_percent"]
        cells = (
            f"{enforcing['threads']:,}",
            f"every {churn_s:g} s" if churn_s else "never",
            _use(observing),
            _use(enforcing),
            f"{ratio:.1f}",
            f"{_steering(enforcing):.2f} %",
        )
        yield f"| {' | '.join(cells)} |"


def _use(record: Json) -> str:
    return f"{record['agent_percent']:.2f} %, {record['agent_mib']:.1f} MiB"


def _steering(record: Json) -> float:
    parts = record["parts_percent"]
    return float(sum(percent for part, percent in parts.items() if part.startswith("steer_")))


def read(paths: Sequence[Path]) -> list[Json]:
    """Return all records of the files."""
    return read_records(paths, FORMAT)


if __name__ == "__main__":
    print(*table(read([Path(name) for name in sys.argv[1:]])), sep="\n")
