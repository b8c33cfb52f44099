"""Reads files of records: one JSON object a line, each with the number of its format."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class UnreadableRecord(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised for a line that is no record of this format, with its file and number."""


def read_records(paths: Iterable[Path], form: int) -> list[dict[str, Any]]:
    """Return all records of the files, which have the format *form*. Empty lines are left out.

    Raises UnreadableRecord for a line that is no such record.
    """
    return [
        _parsed(line, f"{path}:{number}", form)
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.strip()
    ]


def _parsed(line: str, place: str, form: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as problem:
        raise UnreadableRecord(f"{place}: {problem}") from problem
    if not isinstance(record, dict) or record.get("format") != form:
        raise UnreadableRecord(f"{place}: no record of format {form}")
    return record
