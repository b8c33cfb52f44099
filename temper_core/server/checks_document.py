"""The JSON of ``/checks``: what the plugins have checked, within bounds."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from temper_core.records.checks import Check, CheckState

MOST_CHECKS = 500
LONGEST_TEXT = 500

_STATES = frozenset(CheckState)


def checks_document(checks: Iterable[tuple[str, Check]]) -> dict[str, Any]:
    """Say *checks*, each with its plugin's name. A state that is none is unknown."""
    return {"checks": [_check(*each) for each in islice(checks, MOST_CHECKS)]}


def _check(plugin: str, check: Check) -> dict[str, str]:
    return {
        "plugin": plugin,
        "name": _line(check.name),
        "state": str(check.state if check.state in _STATES else CheckState.UNKNOWN),
        "detail": _line(check.detail),
        "remedy": _line(check.remedy),
    }


def _line(text: object) -> str:
    """Return *text* in one line that a terminal may be given."""
    if not isinstance(text, str):
        return ""
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST_TEXT])
