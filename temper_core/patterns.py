"""Patterns of profiles, searched in time linear in the text.

Patterns search names and command lines that a pod's own threads choose. Such a text can block a
backtracking engine for ever, but not RE2. RE2 is optional: without it every pattern is refused. It
takes 3 MiB, so it is loaded for the first search, or for the first pattern that is not plain. An
agent whose pods match no profile with patterns never loads it.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from importlib.util import find_spec
from typing import Protocol

LONGEST_PATTERN = 1_000
"""Characters."""
LARGEST_PROGRAM = 1 << 20
"""Bytes of one compiled pattern. This also bounds the cost of one search."""
MOST_PATTERNS = 64
"""Patterns of one profile."""
LARGEST_PROGRAMS = 1 << 14
"""Instructions of all patterns of one profile together, in which a search is linear: a pattern of
ten characters has about ten."""
LARGEST_STEP = 8
"""Instructions of one character of a plain pattern, at most: a dot takes eight in UTF-8."""
MOST_REFUSED = 8
"""Refused patterns of one profile that are reported one by one. RE2 takes up to 0.1 s to refuse one
whose program would be too large."""
MOST_COMPILED = 1_024
"""Compiled patterns that are kept: more than eight trials and eight other profiles have. A search
for one more compiles it again."""
NO_ENGINE = "needs RE2, which is not installed: pip install 'temper-agent[patterns]'"

# Plain: literals, escaped punctuation, dots, simple classes and groups, each repeated at most once
# by ?, * or +, and anchors. RE2 accepts all of these, in a program that grows with their length.
_CLASS = r"\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9 _.:/])+\]"
_ATOM = rf"[A-Za-z0-9 _:/,=@#-]|\\[\[\](){{}}.^$|?*+/-]|\.|{_CLASS}"
_PLAIN = re.compile(rf"(?:(?:{_ATOM})[?*+]?|[\^$|]|\((?!\?)|\)[?*+]?)+")
_NOT_GROUPING = re.compile(rf"\\.|{_CLASS}|[^()]")


class Pattern(Protocol):
    """The methods of a compiled pattern that are used here. ``programsize`` is in instructions."""

    programsize: int

    def search(self, text: bytes) -> object | None:
        """Return a match anywhere in *text*, or None."""


def finds(pattern: str, text: str) -> bool:
    """Whether *pattern* is found anywhere in *text*. Raise ValueError if it is invalid.

    Bytes of the text that were not UTF-8 become ``?``, because RE2 refuses such text.
    """
    return _compiled(pattern).search(text.encode(errors="replace")) is not None


def require_pattern(pattern: str) -> None:
    """Raise ValueError, with the allowed form, unless RE2 can compile *pattern*."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"must be at most {LONGEST_PATTERN} characters, not {len(pattern)}")
    if not _has_engine():
        raise ValueError(NO_ENGINE)
    if not is_plain(pattern):
        _compiled(pattern)


def count_problem(patterns: Collection[str]) -> str:
    """Return that one profile has too many *patterns*. Empty if it does not."""
    count = len(frozenset(patterns))
    if count > MOST_PATTERNS:
        return f"must have at most {MOST_PATTERNS} different patterns, not {count}"
    return ""


def cost_problem(patterns: Collection[str]) -> str:
    """Return why the *patterns* of one profile cost too much together. Empty if they do not.

    Threads with other names are searched for each pattern, and a pod chooses the names. The look
    ends with the first problem, because each pattern that is compiled takes time as well. Invalid
    patterns are a problem only if they are many.
    """
    if problem := count_problem(patterns):
        return problem
    size = refused = 0
    for pattern in dict.fromkeys(patterns if _has_engine() else ()):
        try:
            require_pattern(pattern)
            size += _size(pattern)
        except ValueError as error:
            refused += 1
            if refused > MOST_REFUSED:
                return f"has more than {MOST_REFUSED} invalid patterns, of which one {error}"
        if size > LARGEST_PROGRAMS:
            return (
                f"its patterns have more than {LARGEST_PROGRAMS:,} instructions together; "
                "repeat less often"
            )
    return ""


def _size(pattern: str) -> int:
    """Return the instructions of the compiled *pattern*, or at least as many for a plain one."""
    if is_plain(pattern):
        return len(pattern) * LARGEST_STEP
    return int(_compiled(pattern).programsize)


def is_plain(pattern: str) -> bool:
    """Whether *pattern* is so simple that RE2 certainly accepts it."""
    return _PLAIN.fullmatch(pattern) is not None and _is_balanced(pattern)


def _is_balanced(pattern: str) -> bool:
    depth = 0
    for parenthesis in _NOT_GROUPING.sub("", pattern):
        depth += 1 if parenthesis == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@lru_cache(maxsize=1)
def _has_engine() -> bool:
    return find_spec("re2") is not None


def _compiled(pattern: str) -> Pattern:
    """Return *pattern* compiled. Raise ValueError if RE2 refuses it."""
    outcome = _outcome(pattern)
    if isinstance(outcome, str):
        raise ValueError(outcome)  # noqa: TRY004 - it is the reason of a refusal
    return outcome


@lru_cache(maxsize=MOST_COMPILED)
def _outcome(pattern: str) -> Pattern | str:
    """Return *pattern* compiled, or why RE2 refuses it, which takes as long to find out."""
    try:
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - it ships no types; see above
    except ImportError:
        return NO_ENGINE
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = LARGEST_PROGRAM
    try:
        compiled: Pattern = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        return (
            "must be a regular expression as RE2 takes them, without look-around and "
            f"backreferences, not {pattern!r}: {_reason(error)}"
        )
    return compiled


def _reason(error: Exception) -> str:
    message = error.args[0] if error.args else ""
    return (
        message.decode(errors="replace") if isinstance(message, bytes) else "it is no Unicode text"
    )
