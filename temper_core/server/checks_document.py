"""The JSON of ``/checks``: the plugins' checks, bounded in number and length."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from temper_core.records.checks import Check, CheckState

MOST_CHECKS = 500
LONGEST_TEXT = 500

_STATES = frozenset(CheckState)


def checks_document(checks: Iterable[tuple[str, Check]]) -> dict[str, Any]:
    """Return *checks* as JSON, each with its plugin's name. An invalid state becomes unknown."""
    return {"checks": [_check(*check) for check in islice(checks, MOST_CHECKS)]}


def _check(plugin: str, check: Check) -> dict[str, str]:
    return {
        "plugin": plugin,
        "name": one_line(check.name),
        "state": str(check.state if check.state in _STATES else CheckState.UNKNOWN),
        "detail": one_line(check.detail),
        "remedy": one_line(check.remedy),
    }


def one_line(text: object) -> str:
    """Return *text* as one line that is safe to print on a terminal."""
    if not isinstance(text, str):
        return ""
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST_TEXT])
