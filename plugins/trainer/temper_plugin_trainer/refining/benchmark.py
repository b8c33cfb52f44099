"""The output of a benchmark command: a JSON line, or numbers."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from temper_core import InputError, parse_tenant_json
from temper_core.console import printable

BETTER = ("lower", "higher")
LONGEST_UNIT = 20
LONGEST_SHOWN = 80


@frozen
class Asked:
    """The metric that a command is to print. An empty ``better`` is taken from what it prints."""

    metric: str
    better: str = ""


@frozen
class Measured:
    """One result. ``better`` is ``lower`` or ``higher``, ``value`` is finite and above 0."""

    value: float
    unit: str
    better: str


def read_result(output: str, asked: Asked) -> Measured:
    """Return the result in the *output* of a benchmark command.

    It is the last line that is a JSON object ``{"metric", "value", "unit", "better"}`` of the
    metric asked for. Without any JSON object it is the median of the lines that are numbers. Raises
    InputError if neither is there, or if the value is not above 0: gains are ratios.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    rows = [row for line in lines if (row := _json_row(line)) is not None]
    if rows:
        return _of_row(rows, asked)
    numbers = [number for line in lines if (number := _number(line)) is not None]
    if not numbers:
        last = printable(lines[-1][:LONGEST_SHOWN]) if lines else "nothing"
        raise InputError(
            f"--benchmark printed neither a JSON line with the metric {asked.metric!r} nor "
            f"numbers; its last line: {last}"
        )
    return Measured(_positive(statistics.median(numbers)), "", asked.better or "lower")


def _json_row(line: str) -> Mapping[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        row = parse_tenant_json(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _of_row(rows: Sequence[Mapping[str, Any]], asked: Asked) -> Measured:
    row = next((row for row in reversed(rows) if row.get("metric") == asked.metric), None)
    if row is None:
        names = sorted({str(row.get("metric")) for row in rows})
        shown = printable(", ".join(names)[:LONGEST_SHOWN])
        raise InputError(f"--benchmark printed no metric {asked.metric!r}, but {shown}")
    value, better, unit = row.get("value"), row.get("better"), row.get("unit", "")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"--benchmark: value must be a number, not {value!r:.{LONGEST_SHOWN}}")
    return Measured(_positive(value), _unit(unit), _direction(better, asked))


def _unit(unit: object) -> str:
    if not isinstance(unit, str) or len(unit) > LONGEST_UNIT:
        raise InputError(f"--benchmark: unit must be a text of at most {LONGEST_UNIT} characters")
    return unit


def _direction(better: object, asked: Asked) -> str:
    if better is None:
        return asked.better or BETTER[0]
    if better not in BETTER:
        raise InputError(
            f'--benchmark: better must be "lower" or "higher", not {better!r:.{LONGEST_SHOWN}}'
        )
    if asked.better and better != asked.better:
        raise InputError(f"--benchmark: better is {better!r}, but --better is {asked.better!r}")
    return str(better)


def _number(line: str) -> float | None:
    try:
        return float(line)
    except ValueError:
        return None


def _positive(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"--benchmark: value must be a finite number above 0, not {number:g}")
    return number
