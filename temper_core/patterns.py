"""Patterns of profiles, judged in time that grows with the text and no faster.

A pattern looks at names and command lines that a pod's own threads choose. A backtracking engine
can be held up for ever by such a text; RE2 cannot. It is loaded where the first pattern is: most
nodes have none, and commands are to start fast.
"""

from functools import lru_cache
from typing import Protocol

LONGEST_PATTERN = 1_000
"""In characters."""
LARGEST_PROGRAM = 1 << 20
"""Bytes that one compiled pattern may take: bounds what one judgement costs, too."""


class Pattern(Protocol):
    """A compiled pattern, as much of it as is needed here."""

    def search(self, text: bytes) -> object | None:
        """Return what is found anywhere in *text*, or None."""


def finds(pattern: str, text: str) -> bool:
    """Whether *pattern* is found anywhere in *text*; raise ValueError where it is none.

    What was no UTF-8 in the text stands as ``?``: RE2 would take no such text.
    """
    return _compiled(pattern).search(text.encode(errors="replace")) is not None


def require_pattern(pattern: str) -> None:
    """Raise ValueError, with what is allowed, unless *pattern* can be judged by RE2."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"must be at most {LONGEST_PATTERN} characters, not {len(pattern)}")
    _compiled(pattern)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Pattern:
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - it ships no types; see above

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = LARGEST_PROGRAM
    try:
        compiled: Pattern = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(
            "must be a regular expression as RE2 takes them, without look-around and "
            f"backreferences, not {pattern!r}: {_reason(error)}"
        ) from error
    return compiled


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else "it is no Unicode text"
