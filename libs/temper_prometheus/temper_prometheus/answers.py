"""Answers of the HTTP API of Prometheus (prometheus.io/docs, "HTTP API")."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

Labels = Mapping[str, str]
Point = tuple[float, float]
"""Seconds and value."""
MOST = 1e18
MOST_WARNINGS = 3


@frozen
class Series:
    """One series of an answer. ``points`` are pairs of seconds and the value's text, unchecked."""

    labels: Labels
    points: Sequence[Any]

    def values(self) -> Iterator[Point]:
        """Yield time and value of the points that have one. Raises ValueError for damage."""
        for point in self.points:
            at, text = point
            value = sample_value(text)
            if value is not None:
                yield _time(at), value


@frozen
class Answer:
    """The series of an answer, and what the server warns of."""

    series: Sequence[Series]
    warnings: tuple[str, ...] = ()


def parse(content: bytes, kind: str) -> Answer:
    """Read an answer with a result of *kind*: ``vector`` or ``matrix``. Raises ValueError."""
    document = _table(_json(content), "the answer")
    if document.get("status") != "success":
        raise ValueError(error_in(content) or "the status is not success")
    data = _table(document.get("data"), "data")
    if data.get("resultType") != kind:
        raise ValueError(f"the result is no {kind}")
    result = data.get("result")
    if not isinstance(result, list):
        raise ValueError("the result is no list")  # noqa: TRY004 - one error for all damage
    return Answer([_series(each, kind) for each in result], _texts(document.get("warnings")))


def error_in(content: bytes) -> str:
    """Return the error that an answer tells, empty without one."""
    try:
        document = _table(_json(content), "the answer")
    except ValueError:
        return ""
    error = document.get("error")
    return error if isinstance(error, str) else ""


def sample_value(text: object) -> float | None:
    """Return the number of a sample. None if it is NaN, infinite, negative or out of any use.

    Raises ValueError if it is no number in text.
    """
    if type(text) is not str:
        raise ValueError("a value is no text")
    value = float(text)
    return value if 0 <= value <= MOST else None


def _time(at: object) -> float:
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at <= MOST:
        raise ValueError("a time is no number")
    return at


def _json(content: bytes) -> object:
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("the answer is nested too deep") from error


def _table(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")  # noqa: TRY004 - one error for all damage
    return value


def _series(value: object, kind: str) -> Series:
    row = _table(value, "a series")
    labels = _table(row.get("metric"), "metric")
    if not all(isinstance(label, str) for label in labels.values()):
        raise ValueError("a label is no text")
    points = row.get("values") if kind == "matrix" else [row.get("value")]
    if not isinstance(points, list):
        raise ValueError("the values of a series are no list")  # noqa: TRY004 - as above
    if not all(isinstance(point, list) and len(point) == 2 for point in points):  # noqa: PLR2004
        raise ValueError("a sample is no pair")
    return Series(labels, points)


def _texts(value: object) -> tuple[str, ...]:
    found = value if isinstance(value, list) else []
    return tuple(text for text in found if isinstance(text, str))[:MOST_WARNINGS]
