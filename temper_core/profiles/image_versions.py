"""Versions of programs in the tags of their images, and conditions on them.

A tag is often less precise than a version: ``8`` is any 8.x. So a tag stands for a range of
versions, and a condition on it holds, does not hold, or is unknown.
"""

import re
from collections.abc import Iterable

from temper_core.records.versions import CONDITION

Numbers = tuple[int, ...]

TAG = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})(?:[-_+.].*)?", re.ASCII)
"""A version number, alone or with a suffix that does not belong to it: 8.0.36-debian."""


def version_of(tag: str) -> Numbers | None:
    """Return the numbers that *tag* begins with. None if it is no version, such as latest."""
    tag_match = TAG.fullmatch(tag)
    return _numbers(tag_match[1]) if tag_match else None


def satisfies(tag: str, conditions: Iterable[str]) -> bool | None:
    """Whether the version in *tag* meets all *conditions*. None if that is unknown."""
    version = version_of(tag)
    if version is None:
        return None
    verdicts = [_satisfies(version, condition) for condition in conditions]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def contradict(conditions: Iterable[str]) -> bool:
    """Whether no version can meet all *conditions*."""
    firsts, ends = [_low((0,))], []
    for parsed in filter(None, map(CONDITION.fullmatch, conditions)):
        bound = _numbers(parsed[2])
        if parsed[1] != "<":
            firsts.append(_low(bound))
        if parsed[1] != ">=":
            ends.append(_low(bound) if parsed[1] == "<" else _range(bound)[1])
    return bool(ends) and max(firsts) >= min(ends)


def _satisfies(version: Numbers, condition: str) -> bool | None:
    parsed = CONDITION.fullmatch(condition)
    if parsed is None:
        return None
    bound = _numbers(parsed[2])
    low, high = _range(version)
    match parsed[1]:
        case ">=":
            return _known(holds=low >= _low(bound), fails=high <= _low(bound))
        case "<":
            return _known(holds=high <= _low(bound), fails=low >= _low(bound))
    first, end = _range(bound)
    return _known(holds=first <= low and high <= end, fails=high <= first or end <= low)


def _known(*, holds: bool, fails: bool) -> bool | None:
    return True if holds else False if fails else None


def _range(version: Numbers) -> tuple[Numbers, Numbers]:
    """Return the first version that *version* may stand for, and the first one after them."""
    return _low(version), _low((*version[:-1], version[-1] + 1))


def _low(version: Numbers) -> Numbers:
    return (*version, *[0] * (4 - len(version)))


def _numbers(text: str) -> Numbers:
    return tuple(int(part) for part in text.split("."))
