"""Generates the table of the last soak from its records. Cog writes it into ``evidence.md``."""

import json
from collections.abc import Iterator
from pathlib import Path

from bench.soak.report import rows, table

RECORDS = Path(__file__).parents[1] / "bench/soak/records/2026-11-28.jsonl"


def soak_table() -> Iterator[str]:
    """Yield the lines of the table of the committed records."""
    lines = RECORDS.read_text().splitlines()
    yield from table(rows([json.loads(line) for line in lines]))
