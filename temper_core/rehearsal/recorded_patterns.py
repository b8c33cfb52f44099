"""Rejects patterns of a recorded plan that could take excessive time to match."""

import re

from temper_core.rehearsal.recording_lines import Line

LONGEST = 256 * 1024
DEEPEST = 2
MOST_IN_ROW = 2

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_TOKENS = re.compile(r"\(\?:|[()|*+?{]")


def refuse_repeats(line: Line, layer: str, pattern: str) -> None:
    """Raise DocumentError unless *pattern* has only literals and few alternatives, as in a plan.

    Python's engine backtracks in repeats, and in long rows of alternatives.
    """
    if len(pattern) > LONGEST or not _is_simple(_ESCAPED.sub("x", pattern)):
        raise line.misfit(f"plan.layers: {layer!r} matches by a pattern that no plan has")


def _is_simple(pattern: str) -> bool:
    """Whether groups are shallow, few between two bars, and never repeated."""
    in_row = [0]
    for token in _TOKENS.findall(pattern):
        if token == "(?:":  # noqa: S105 - no password
            in_row[-1] += 1
            in_row.append(0)
        elif token == ")":  # noqa: S105 - the same
            in_row.pop()
        elif token == "|":  # noqa: S105 - the same
            in_row[-1] = 0
        else:
            return False
        if not in_row or len(in_row) > DEEPEST + 1 or in_row[-1] > MOST_IN_ROW:
            return False
    return len(in_row) == 1
