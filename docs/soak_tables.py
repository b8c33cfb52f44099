"""Generates the tables of the soaks from their records. Cog writes them into ``evidence.md``."""

import json
from pathlib import Path

from bench.soak.report import rows, table

RECORDS = Path(__file__).parents[1] / "bench/soak/records"


def soak_table(name: str) -> str:
    """Render the table of the committed records of *name*."""
    lines = (RECORDS / f"{name}.jsonl").read_text().splitlines()
    return "\n".join(table(rows([json.loads(line) for line in lines])))
