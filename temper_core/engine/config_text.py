"""Decode a configuration's JSON as strictly as the engine's own reader, serde_json, does."""

import json
import math
from typing import Any, NoReturn

from attrs import frozen

DEEPEST = 127
SMALLEST_INTEGER = -(2**63)
LARGEST_INTEGER = 2**64 - 1
LONGEST_INTEGER_DIGITS = 20


class NotJson(ValueError):  # noqa: N818 - reads as the fact it reports
    """The text is not JSON as the engine reads it."""


@frozen(eq=False)
class ConfigTable:
    """A JSON object. Keys are in the order of the text, including repeated ones."""

    pairs: tuple[tuple[str, Any], ...]


def decode(text: str) -> object:
    """Return the value of *text*, with objects as ConfigTables. Raise NotJson with the reason."""
    try:
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_refuse_constant,
            object_pairs_hook=lambda pairs: ConfigTable(tuple(pairs)),
        )
    except RecursionError as error:
        raise NotJson(f"is nested deeper than {DEEPEST} levels") from error
    except json.JSONDecodeError as error:
        raise NotJson(f"is not JSON: {error}") from error
    _refuse_depth_and_halves(value)
    return value


def _integer(digits: str) -> int | float:
    # serde_json reads "-0", and integers beyond 64 bits, as floating point.
    if digits == "-0" or len(digits) > LONGEST_INTEGER_DIGITS:
        return _fraction(digits)
    number = int(digits)
    return number if SMALLEST_INTEGER <= number <= LARGEST_INTEGER else _fraction(digits)


def _fraction(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJson(f"has the number {_cut(digits)}, which is out of range")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"is not JSON: {name} cannot be written in JSON")


def _refuse_depth_and_halves(value: object) -> None:
    """Refuse text that Python reads and the engine does not: deep nesting, lone surrogates."""
    waiting = [(value, 1)]
    while waiting:
        current, depth = waiting.pop()
        inner = _inside(current)
        if inner and depth > DEEPEST:
            raise NotJson(f"is nested deeper than {DEEPEST} levels")
        waiting += [(part, depth + 1) for part in inner]
        if isinstance(current, str) and any("\ud800" <= letter <= "\udfff" for letter in current):
            raise NotJson(f"has half of a surrogate pair in {_cut(repr(current))}")


def _inside(value: object) -> list[object]:
    if isinstance(value, ConfigTable):
        return [part for pair in value.pairs for part in pair]
    return list(value) if isinstance(value, list) else []


def _cut(text: str, length: int = 40) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
