"""A report as the text of a pull request: what changes, why, and what is not known."""

from collections.abc import Iterator

from temper_core.console import Row, printable
from temper_core.observed import text
from temper_plugin_rightsizer.commands.formats import (
    HEADS,
    cells,
    escaped,
    needs_change,
    reasons_of,
    texts,
)
from temper_plugin_rightsizer.commands.totals import as_sentence

LONGEST = 65_000
"""GitHub takes 65,536 characters, and GitLab more."""
MOST_WORKLOADS_NAMED = 3


def as_pull_request(document: Row) -> str:
    """Return a title, an empty line, and the body in Markdown.

    The reasons of the last containers are left out if the text gets too long, then their rows.
    """
    changing = needs_change(document)
    if not changing:
        return "No container should change"
    totals = as_sentence({**document, "containers": changing})
    head = [
        f"Rightsize {_workloads(changing)}",
        "",
        f"{len(changing)} containers should change. {totals}",
        "",
        f"| {' | '.join((*HEADS, 'confidence'))} |",
        f"|{' --- |' * (len(HEADS) + 1)}",
    ]
    notes = ["", *(f"- {quiet(note)}" for note in texts(document, "notes"))]
    left = LONGEST - sum(len(line) + 1 for line in (*head, *notes))
    table, left = _fitting(
        [f"| {' | '.join(map(quiet, cells(row)[1:]))} |" for row in changing], left
    )
    why, _ = _fitting([line for row in changing for line in _why(row)], left - 20)
    return "\n".join((*head, *table, "", "## Why", "", *why, *notes)).rstrip("\n")


def quiet(content: str) -> str:
    """Return a text without mentions: one with ``@``, or an entity that may be one, is code."""
    if not {"@", "&"} & set(content):
        return escaped(content)
    code = printable(content).replace("`", "'").replace("|", "/")
    return f"`{code}`"


def _workloads(changing: list[Row]) -> str:
    names = list(dict.fromkeys(_workload(row) for row in changing))
    shown = ", ".join(names[:MOST_WORKLOADS_NAMED])
    more = len(names) - MOST_WORKLOADS_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _workload(row: Row) -> str:
    name = text(row, "pod") or text(row, "owner").partition("/")[2]
    return quiet("/".join(filter(None, (text(row, "namespace"), name))))


def _why(row: Row) -> Iterator[str]:
    yield f"- {quiet(cells(row)[1])}"
    for reason in reasons_of(row):
        yield f"  - {quiet(reason)}"


def _fitting(lines: list[str], most: int) -> tuple[list[str], int]:
    """Return the first lines that fit into *most* characters, and what is left of them."""
    fitting = []
    for line in lines:
        most -= len(line) + 1
        if most < 0:
            break
        fitting.append(line)
    return fitting, max(most, 0)
