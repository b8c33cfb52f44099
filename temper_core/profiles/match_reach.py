"""Find matches of a profile that can never match, or that earlier matches hide.

Only certain results are reported. Patterns are read with Python's own parser. Patterns that it
refuses, or reads differently from RE2, are skipped.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice, product, takewhile
from typing import Any

from temper_core.records.thread_groups import (
    LONGEST_COMM,
    Behaviour,
    ThreadGroup,
    ThreadMatch,
    cuts_of,
)

LONGEST_TITLE_BYTES = 4 * 1_024
"""Patterns see 1,024 characters, of at most four bytes each."""
US_PER_S = 1_000_000
PREFIXES = ("comm_prefix", "process", "exe", "parent")
MOST_SPELLINGS = 256
"""Alternatives of one pattern that are looked at, one by one."""
MOST_TOLD = 4
"""Alternatives of one pattern that are reported."""
NEVER = math.inf
BYTES = 256
UNCERTAIN = re.compile(r"\[[^\]]*\[|--|&&|~~|\|\||\(\?[a-zA-Z]*m")
"""Nested classes, which Python and RE2 read differently, and anchors at lines."""
BEGINS = {"AT_BEGINNING", "AT_BEGINNING_STRING"}
ENDS = {"AT_END", "AT_END_STRING"}
REPEATS = {"MAX_REPEAT", "MIN_REPEAT"}

_READ: Any = import_module("re._parser").parse
"""Python's own parser, which has no stubs."""

_Earlier = defaultdict[str, list[tuple[int, str, ThreadMatch]]]
"""Matches with the number and the name of their group, by their ``comm_prefix``."""
Least = tuple[float, bool]
"""The least number of bytes that a part matches, and whether nothing may follow it."""


def impossibilities(match: ThreadMatch) -> Iterator[tuple[str, str]]:
    """Yield the keys of *match* that can hold for no thread, each with the reason."""
    for key in PREFIXES:
        if "\0" in (getattr(match, key) or ""):
            yield f".{key}", "can never match: no name has a NUL"
    for why in _name_faults(match.comm_pattern or ""):
        yield ".comm_pattern", f"can never match: {why}"
    if why := unreachable(match.title_pattern or "", LONGEST_TITLE_BYTES, "a title"):
        yield ".title_pattern", f"can never match: {why}"
    if _names_another_leader(match):
        yield ".leader", "can never match: the name of a leader is that of its process"
    if match.behaviour is not None:
        yield from _overburdened(match.behaviour)


def unreachable(pattern: str, longest: int, what: str) -> str:
    """Return why *pattern* is found in no *what* of *longest* bytes. Empty if it may be."""
    least = _least_bytes(pattern)
    if least == NEVER:
        return f"it requires text before {what} begins or after it ends"
    if least > longest:
        return f"it takes at least {least:g} bytes, and {what} has at most {longest}"
    return ""


def _name_faults(pattern: str) -> list[str]:
    """Return why *pattern*, or an alternative of it that is plain text, is found in no name."""
    spellings = dict.fromkeys(_plain_spellings(pattern))
    too_long = [text for text in spellings if len(text) > LONGEST_COMM]
    if too_long:
        return [_too_long(text) for text in too_long[:MOST_TOLD]]
    why = unreachable(pattern, LONGEST_COMM, "a name")
    return [why] if why else []


def _too_long(text: bytes) -> str:
    name = text.decode("utf-8", "replace")
    size = f"{name!r} has {len(text)} bytes, and a name has at most {LONGEST_COMM}"
    return f"{size}: {cuts_of(name)}"


def hidden(groups: Sequence[ThreadGroup]) -> Iterator[tuple[int, str]]:
    """Yield the index of each group whose matches earlier groups all take, and their names."""
    earlier: _Earlier = defaultdict(list)
    for number, group in enumerate(groups):
        takers = [*takewhile(bool, (_taker(earlier, match) for match in group.match))]
        if takers and len(takers) == len(group.match):
            yield number, " and ".join(dict.fromkeys(takers))
        for match in group.match:
            earlier[match.comm_prefix or ""].append((number, group.name, match))


def covers(earlier: ThreadMatch, later: ThreadMatch) -> bool:
    """Whether *earlier* certainly takes every thread that *later* takes."""
    if not all(_begins_alike(earlier, later, key) for key in PREFIXES):
        return False
    if (later.older_than_s or 0) < (earlier.older_than_s or 0):
        return False
    equal = ("comm_pattern", "title_pattern", "leader", "is_child")
    if any(getattr(earlier, key) not in (None, getattr(later, key)) for key in equal):
        return False
    return earlier.behaviour is None or _is_within(later.behaviour, earlier.behaviour)


def _begins_alike(earlier: ThreadMatch, later: ThreadMatch, key: str) -> bool:
    return (getattr(later, key) or "").startswith(getattr(earlier, key) or "")


def _taker(earlier: _Earlier, match: ThreadMatch) -> str:
    """Return the name of the first group that takes all threads of *match*. Empty for none."""
    prefix = match.comm_prefix or ""
    takers = (
        next(((number, name) for number, name, each in places if covers(each, match)), None)
        for length in range(len(prefix) + 1)
        if (places := earlier.get(prefix[:length]))
    )
    return min(filter(None, takers), default=(0, ""))[1]


def _is_within(inner: Behaviour | None, outer: Behaviour) -> bool:
    for key in ("cpu_share", "run_us", "wakeups_per_s"):
        wide = getattr(outer, key)
        narrow = getattr(inner, key) if inner is not None else None
        if wide is not None and (
            narrow is None or not wide[0] <= narrow[0] <= narrow[1] <= wide[1]
        ):
            return False
    return True


def _names_another_leader(match: ThreadMatch) -> bool:
    if not match.leader or match.comm_prefix is None or match.process is None:
        return False
    short, long = sorted((match.comm_prefix, match.process), key=len)
    return not long.startswith(short)


def _overburdened(behaviour: Behaviour) -> Iterator[tuple[str, str]]:
    share, run, wakes = behaviour.cpu_share, behaviour.run_us, behaviour.wakeups_per_s
    if share is not None and share[0] > 1:
        yield ".behaviour.cpu_share", "can never match: a thread uses one CPU at most, which is 1"
    if run is not None and wakes is not None and run[0] * wakes[0] > US_PER_S:
        why = "the least run_us times the least wakeups_per_s exceeds one CPU"
        yield ".behaviour.run_us", f"can never match: {why}"


def _least_bytes(pattern: str) -> float:
    parsed = _parsed(pattern)
    return _sequence(parsed, 0)[0] if parsed is not None else 0


def _plain_spellings(pattern: str) -> list[bytes]:
    """Return the alternatives of *pattern* that consist of plain text, without anchors."""
    parsed = _parsed(pattern)
    if parsed is None:
        return []
    try:
        return list(filter(None, islice(_spellings(parsed), MOST_SPELLINGS)))
    except RecursionError:
        return []


def _parsed(pattern: str) -> Any:  # noqa: ANN401 - re's own tree has no types
    """Return Python's tree of *pattern*, None if its meaning is uncertain."""
    if UNCERTAIN.search(pattern):
        return None
    try:
        # One character for each byte of UTF-8, so that lengths are the kernel's.
        return _READ(pattern.encode().decode("latin-1"))
    except (re.error, RecursionError, OverflowError):
        return None


def _spellings(parts: Any) -> Iterator[bytes | None]:  # noqa: ANN401 - as above
    """Yield the plain text of each alternative, None for one that is more than plain text."""
    choices = [tuple(islice(_choices(str(kind), value), MOST_SPELLINGS)) for kind, value in parts]
    for chosen in product(*choices):
        known = [text for text in chosen if text is not None]
        yield b"".join(known) if len(known) == len(chosen) else None


def _choices(kind: str, value: Any) -> Iterator[bytes | None]:  # noqa: ANN401 - as above
    if kind == "LITERAL":
        yield bytes([value]) if value < BYTES else None
    elif kind == "AT":
        yield b""
    elif kind == "IN":
        is_listed = all(str(inner) == "LITERAL" for inner, _ in value)
        for inner, byte in value if is_listed else [("", None)]:
            yield from _choices(str(inner), byte)
    elif kind == "SUBPATTERN":
        yield from _spellings(value[-1])
    elif kind == "BRANCH":
        for option in value[1]:
            yield from _spellings(option)
    else:
        yield None


def _sequence(parts: Any, before: float) -> Least:  # noqa: ANN401 - re's own tree has no types
    total, ended = 0.0, False
    for kind, value in parts:
        if str(kind) == "AT" and str(value) in BEGINS and before + total > 0:
            return NEVER, False
        if str(kind) == "AT" and str(value) in ENDS:
            ended = True
        least, ends = _part(str(kind), value, before + total)
        if least > 0 and ended:
            return NEVER, False
        total, ended = total + least, ended or ends
    return total, ended


def _part(kind: str, value: Any, before: float) -> Least:  # noqa: ANN401 - as above
    if kind in {"LITERAL", "NOT_LITERAL", "ANY", "IN"}:
        return 1, False
    if kind == "SUBPATTERN":
        return _sequence(value[-1], before)
    if kind == "BRANCH":
        options = [_sequence(option, before) for option in value[1]]
        return min(least for least, _ in options), all(ends for _, ends in options)
    if kind in REPEATS and value[0] > 0:
        least, ends = _sequence(value[2], before)
        return least * value[0], ends
    return 0, False
