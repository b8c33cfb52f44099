"""Reads the records of the ladder, and gathers the runs that repeat one another."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen

from bench.ladder.measures import MEASURES, Json
from bench.ladder.spreads import Spread
from bench.record_files import read_records

FORMAT = 1
STOCK, UNCAPTURED = "stock", "none"


@frozen
class Row:
    """All runs of one arm under one load at one level.

    What was captured meanwhile is a part of the arm's name: ``stock+node``.
    """

    load: str
    level: int
    arm: str
    records: Sequence[Json]

    def spread(self, measure: str) -> Spread | None:
        """Return the values of a measure, None if no run has it."""
        values = [MEASURES[measure].of(record) for record in self.records]
        known = tuple(value for value in values if value is not None)
        return Spread(known) if known else None

    @property
    def is_stock(self) -> bool:
        """Whether the arm has no engine."""
        return self.arm.partition("+")[0] == STOCK

    @property
    def is_kept(self) -> bool:
        """Whether the arm's own scheduler was attached throughout every run."""
        own = "stock" if self.is_stock else "engine"
        return all(record["scheduler"] == own for record in self.records)

    @property
    def unanswered(self) -> int:
        """Requests without an answer, in all runs that can tell."""
        return sum(record["unanswered"] or 0 for record in self.records)


def read(paths: Iterable[Path]) -> list[Json]:
    """Return all records of the files. Raise UnreadableRecord for a line that is none."""
    return list(read_records(paths, FORMAT))


def rows(records: Iterable[Json]) -> list[Row]:
    """Return one row per load, level and arm. Loads and arms keep the order of the records."""
    gathered: dict[tuple[str, int, str], list[Json]] = {}
    for record in records:
        key = (record["load"], record["level"], _arm_of(record))
        gathered.setdefault(key, []).append(record)
    loads, arms = _ranks(key[0] for key in gathered), _ranks(key[2] for key in gathered)
    ordered = sorted(gathered, key=lambda key: (loads[key[0]], key[1], arms[key[2]]))
    return [Row(*key, gathered[key]) for key in ordered]


def _arm_of(record: Json) -> str:
    capture = record.get("capture", UNCAPTURED)
    return str(record["arm"]) if capture == UNCAPTURED else f"{record['arm']}+{capture}"


def _ranks(names: Iterable[str]) -> dict[str, int]:
    return {name: rank for rank, name in enumerate(dict.fromkeys(names))}
