"""Tables for people: folded to fit a terminal, and never cut for a pipe."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

NARROWEST = 80
PIPED_WIDTH = 10_000


def results_console() -> "Console":
    """Return a console for results: wide enough for everything where no terminal is."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    # A narrower terminal folds lines itself; rich would leave whole columns out.
    width = max(console.width, NARROWEST) if console.is_terminal else PIPED_WIDTH
    return Console(markup=False, highlight=False, width=width)


def plain_table(*columns: str) -> "Table":
    """Return a table without lines, whose cells are folded and not cut."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def shown(value: object) -> str:
    """Write a value for a terminal; what a process calls itself must not steer the terminal."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value))
    return "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(value)
    )
