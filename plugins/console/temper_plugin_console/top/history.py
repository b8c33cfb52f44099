"""The CPU use of layers and pods in the last looks, and its drawing as a sparkline."""

from collections.abc import Mapping, Sequence

from temper_core.observed import Row, number, pod_key, rows, text

LOOKS = 12
"""The looks that a sparkline covers."""
BARS = "▁▂▃▄▅▆▇█"

History = Mapping[str, Sequence[float]]
"""CPUs used in the last looks, oldest first, by ``history_key``."""
USED = {"layers": "cpus_used", "pods": "cpu_used"}
"""The key of the CPU use in the rows of each pane with a history."""


def history_key(pane: str, row: Row) -> str:
    """Return the key of a row of *pane*."""
    return f"{pane} {pod_key(row) or text(row, 'name')}"


def longer(history: History, document: Row) -> History:
    """Return *history* with the observation *document*, without what that no longer has."""
    used = {
        history_key(pane, row): number(row, key) or 0.0
        for pane, key in USED.items()
        for row in rows(document, pane)
    }
    return {key: (*history.get(key, ()), value)[-LOOKS:] for key, value in used.items()}


def sparkline(values: Sequence[float]) -> str:
    """Draw *values* as bars, the largest as a whole one. Nothing for fewer than two values."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no course
        return ""
    most = max(values)
    steps = [round(value / most * (len(BARS) - 1)) if most > 0 else 0 for value in values]
    return "".join(BARS[step] for step in steps)
