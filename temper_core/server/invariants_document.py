"""The JSON of ``/invariants``: what the linter checks, and why it matters."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from temper_core.records.invariants import Invariant
from temper_core.server.checks_document import one_line

MOST_INVARIANTS = 500


def invariants_document(invariants: Iterable[tuple[str, Invariant]]) -> dict[str, Any]:
    """Return *invariants* as JSON, each with its plugin's name. They have at most 500 rows."""
    return {"invariants": [_row(*pair) for pair in islice(invariants, MOST_INVARIANTS)]}


def _row(plugin: str, invariant: Invariant) -> dict[str, str]:
    return {
        "plugin": plugin,
        "name": invariant.name,
        "severity": one_line(str(invariant.severity)),
        "why": one_line(invariant.why),
    }
