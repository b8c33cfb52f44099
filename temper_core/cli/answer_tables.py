"""Tables for a terminal or a pipe, made of what the agent answered."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from temper_core.cli.tables import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], object]]

PIPED_WIDTH = 200


def a_console() -> "Console":
    """Return a console that does not squeeze tables into 80 columns for a pipe."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def table_of(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> "Table | None":
    """Render *rows*; None where there are none."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return None
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name, _ in columns:
        table.add_column(name, no_wrap=name not in {"reason", "message"}, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(shown(read(row))) for _, read in columns))
    return table
