"""Conversion of any value, such as a plugin's, to plain JSON."""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

LONGEST_TEXT = 200
LONGEST_KEY = 40
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


def first_misfit(value: object, at: str = "", above: tuple[int, ...] = ()) -> str:
    """Return what in *value* has no type of JSON, and where: ``a Pod at .pods[0]``.

    Empty if everything has one. *at* is where *value* is, *above* are the ids of what encloses it.
    """
    where = f" at {at}" if at else ""
    if isinstance(value, str | int | float | None):
        return ""
    if id(value) in above:
        return f"a {_kind(value)} that contains itself{where}"
    if len(above) >= DEEPEST:
        return f"a {_kind(value)} nested deeper than {DEEPEST} levels"
    if isinstance(value, Mapping):
        odd = next((key for key in value if not isinstance(key, str | int | float | None)), None)
        if odd is not None:
            return f"a dict with a key of type {_kind(odd)}{where}"
        within = [(f"{at}.{_key(key)[:LONGEST_KEY]}", inner) for key, inner in value.items()]
    elif isinstance(value, AbstractSet | list | tuple):
        within = [(f"{at}[{number}]", inner) for number, inner in enumerate(value)]
    else:
        return f"a {_kind(value)}{where}"
    inside = (*above, id(value))
    return next(filter(None, (first_misfit(inner, place, inside) for place, inner in within)), "")


def _kind(value: object) -> str:
    return type(value).__name__


def _key(key: object) -> str:
    return str.__str__(key) if issubclass(type(key), str) else _text(key)


def _text(value: object) -> str:
    try:
        return str.__str__(str(value))[:LONGEST_TEXT]
    except _FAILURES_OF_STR:
        return f"<{type(value).__name__}>"
