"""Generates the tables of the ladder from its records. Cog writes them into ``ladder.md``."""

from pathlib import Path

from bench.ladder.report import report
from bench.ladder.rows import read

RECORDS = Path(__file__).parents[1] / "bench/ladder/records"


def ladder_tables() -> str:
    """Render the tables of the committed records of four CPUs."""
    return report(read(sorted(RECORDS.glob("*.jsonl"))))


def small_node_tables() -> str:
    """Render the tables of the committed records of two CPUs, without a comparison."""
    records = read(sorted((RECORDS / "two-cpus").glob("*.jsonl")))
    return report(records).partition("\n### Against")[0]
