"""Conversion of any value, such as a plugin's, to plain JSON."""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

LONGEST_TEXT = 200
DEEPEST = 32
LARGEST_INTEGER_BITS = 1024
"""A larger integer is infinity for readers of JSON whose numbers are doubles."""

_FAILURES_OF_STR = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def plain_scalar(value: object) -> str | int | float | bool | None:
    """Return *value* as a JSON scalar: None for an infinite number or NaN, text for an object."""
    if value is None or type(value) is bool:
        return value
    # The methods of the base classes: those of a plugin's subclass may do anything.
    kind = type(value)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        number = int.__index__(value)  # type: ignore[arg-type]
        return number if number.bit_length() <= LARGEST_INTEGER_BITS else None
    if issubclass(kind, float):
        real = float.__float__(value)  # type: ignore[arg-type]
        return real if math.isfinite(real) else None
    return _text(value)


def plain_value(value: object, above: tuple[int, ...] = ()) -> Any:  # noqa: ANN401 - JSON
    """Return *value* as JSON, containers included. *above* are the ids of the enclosing ones.

    A container that contains itself, or is nested deeper than ``DEEPEST``, becomes text.
    """
    if id(value) in above or len(above) >= DEEPEST:
        return plain_scalar(value)
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        return {_key(key): plain_value(inner, inside) for key, inner in value.items()}
    if isinstance(value, AbstractSet | list | tuple):
        return [plain_value(inner, inside) for inner in value]
    return plain_scalar(value)


def _key(key: object) -> str:
    return str.__str__(key) if issubclass(type(key), str) else _text(key)


def _text(value: object) -> str:
    try:
        return str.__str__(str(value))[:LONGEST_TEXT]
    except _FAILURES_OF_STR:
        return f"<{type(value).__name__}>"
