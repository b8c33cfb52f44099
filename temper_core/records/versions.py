"""Versions of programs, as the tags of their images tell them, and conditions on them.

A tag often tells less than a version: ``8`` is any 8.x. So a tag stands for a range of versions,
and a condition on it holds, does not, or cannot be known.
"""

import re
from collections.abc import Iterable

Numbers = tuple[int, ...]

TAG = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})(?:[-_+.].*)?", re.ASCII)
"""A number that ends, or that is followed by what no longer belongs to it: 8.0.36-debian."""
CONDITION = re.compile(r"(>=|<|==) ?(\d{1,9}(?:\.\d{1,9}){0,3})", re.ASCII)
CONDITION_PATTERN = r"^(>=|<|==) ?[0-9]{1,9}(\.[0-9]{1,9}){0,3}$"
"""The same, for JSON Schema."""


def require_condition(text: str) -> None:
    """Raise ValueError, with what is allowed, unless *text* is a condition on a version."""
    if CONDITION.fullmatch(text) is None:
        raise ValueError(f"must be >=, < or == and a version, such as '>=8.0', not {text!r}")


def version_of(tag: str) -> Numbers | None:
    """Return the numbers that *tag* begins with; None where it is no version, such as latest."""
    found = TAG.fullmatch(tag)
    return _numbers(found[1]) if found else None


def satisfies(tag: str, conditions: Iterable[str]) -> bool | None:
    """Whether the version that *tag* tells keeps all *conditions*; None where that is not known."""
    version = version_of(tag)
    if version is None:
        return None
    verdicts = [_satisfies(version, condition) for condition in conditions]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def contradict(conditions: Iterable[str]) -> bool:
    """Whether no version at all can keep every one of *conditions*."""
    firsts, ends = [_low((0,))], []
    for found in filter(None, map(CONDITION.fullmatch, conditions)):
        bound = _numbers(found[2])
        if found[1] != "<":
            firsts.append(_low(bound))
        if found[1] != ">=":
            ends.append(_low(bound) if found[1] == "<" else _range(bound)[1])
    return bool(ends) and max(firsts) >= min(ends)


def _satisfies(version: Numbers, condition: str) -> bool | None:
    found = CONDITION.fullmatch(condition)
    if found is None:
        return None
    bound = _numbers(found[2])
    low, high = _range(version)
    match found[1]:
        case ">=":
            return _known(holds=low >= _low(bound), fails=high <= _low(bound))
        case "<":
            return _known(holds=high <= _low(bound), fails=low >= _low(bound))
    first, end = _range(bound)
    return _known(holds=first <= low and high <= end, fails=high <= first or end <= low)


def _known(*, holds: bool, fails: bool) -> bool | None:
    return True if holds else False if fails else None


def _range(version: Numbers) -> tuple[Numbers, Numbers]:
    """Return the first version that *version* may stand for, and the first behind them."""
    return _low(version), _low((*version[:-1], version[-1] + 1))


def _low(version: Numbers) -> Numbers:
    return (*version, *[0] * (4 - len(version)))


def _numbers(text: str) -> Numbers:
    return tuple(int(part) for part in text.split("."))
