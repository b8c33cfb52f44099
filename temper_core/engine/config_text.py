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
    """A JSON object. Keys in the order of the text, those that occur twice included."""

    pairs: tuple[tuple[str, Any], ...]


def decode(text: str) -> object:
    """Return the value of *text*, with objects as Tables. Raise NotJson saying what is wrong."""
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
    # serde_json takes "-0", and what fits no 64-bit integer, for floating point.
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
    """Refuse what Python reads and the engine does not: deep nesting, halves of UTF-16 pairs."""
    waiting = [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        inner = _inside(found)
        if inner and depth > DEEPEST:
            raise NotJson(f"is nested deeper than {DEEPEST} levels")
        waiting += [(each, depth + 1) for each in inner]
        if isinstance(found, str) and any("\ud800" <= letter <= "\udfff" for letter in found):
            raise NotJson(f"has half of a surrogate pair in {_cut(repr(found))}")


def _inside(value: object) -> list[object]:
    if isinstance(value, ConfigTable):
        return [part for pair in value.pairs for part in pair]
    return list(value) if isinstance(value, list) else []


def _cut(text: str, length: int = 40) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
