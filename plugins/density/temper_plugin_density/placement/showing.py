"""Scores as a table for a terminal or a pipe."""

from collections.abc import Mapping
from io import StringIO
from typing import Any

from rich.table import Table
from rich.text import Text

from temper_core import VisibleConsole
from temper_core.console import printable as plain

PIPED_WIDTH = 10_000


def table_text(document: Mapping[str, Any], width: int | None) -> str:
    """Return the nodes with their scores, best first. Without *width* no line is folded."""
    out = StringIO()
    console = VisibleConsole(file=out, width=width or PIPED_WIDTH)
    console.print(f"{document['pod']}: {document['cpu_millis']}m, tier {document['tier']}")
    console.print(f"  {document['tier_reason']}")
    console.print(f"  {document['source']}{_where(document['bound_to'])}")
    console.print(_table(document))
    for node in document["nodes"]:
        for problem in node["problems"]:
            console.print(f"{node['node']}: {plain(problem)}")
    return out.getvalue().rstrip("\n")


def _where(bound_to: str | None) -> str:
    return f"; it is bound to {bound_to}" if bound_to else ""


def _table(document: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("node", "score", "points", "reason"):
        table.add_column(column, overflow="fold", no_wrap=column != "reason")
    for node in document["nodes"]:
        cells = (node["node"], str(node["score"]), f"{node['points']:.1f}", node["reason"])
        table.add_row(*(Text(plain(cell).rstrip()) for cell in cells))
    return table
