"""Columns that fit a width: the least important are left out, the widest are shortened.

A column that may be left out is also left out if it is empty in every row.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from temper_core.observed import Row

if TYPE_CHECKING:
    from rich.text import Text

GAP = 2
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def _plain(_: Row) -> str:
    return ""


@frozen
class Column:
    """One column: the text of its cell for a row, and the style of the cell.

    ``least`` is the width in cells to which it may be shortened, but not below that of the title.
    Columns are left out by ``rank``, the highest first. One of rank 0 always stays.
    """

    title: str
    read: Callable[[Row], str]
    least: int = 0
    right: bool = False
    rank: int = 0
    style: Callable[[Row], str] = _plain


def fitted(cell: str, width: int, *, right: bool = False) -> str:
    """Pad or shorten *cell* to *width* cells of a terminal."""
    from rich.cells import cell_len, set_cell_size

    missing = width - cell_len(cell)
    if missing < 0:
        return set_cell_size(cell, width - 1) + ELLIPSIS if width > 0 else ""
    return " " * missing + cell if right else cell + " " * missing


def table_lines(columns: Sequence[Column], rows: Sequence[Row], width: int) -> "list[Text]":
    """Render the titles, and a line for each row, in *width* cells."""
    from rich.text import Text

    from temper_core.console import shown

    cells = [[shown(column.read(row)) for column in columns] for row in rows]
    widths = _widths(columns, cells, width)
    kept = [number for number, size in enumerate(widths) if size > 0]
    titles = (
        fitted(columns[n].title, widths[n], right=columns[n].right).ljust(widths[n] + GAP)
        for n in kept
    )
    lines = [Text("".join(titles).rstrip(), style="bold")]
    for row, texts in zip(rows, cells, strict=True):
        line = Text()
        for n in kept:
            line.append(fitted(texts[n], widths[n], right=columns[n].right), columns[n].style(row))
            line.append(" " * GAP)
        line.rstrip()
        lines.append(line)
    return lines


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> Sequence[int]:
    """Return the width of every column, 0 for those that are left out."""
    from rich.cells import cell_len

    natural = [
        max(len(column.title), *(cell_len(row[n]) for row in cells)) if cells else len(column.title)
        for n, column in enumerate(columns)
    ]
    least = [
        min(most, max(len(column.title), column.least))
        for column, most in zip(columns, natural, strict=True)
    ]
    kept = [
        n
        for n, column in enumerate(columns)
        if column.rank == 0 or any(row[n].strip() for row in cells)
    ]

    def needed(sizes: Sequence[int]) -> int:
        return sum(sizes[n] for n in kept) + GAP * (len(kept) - 1)

    while needed(least) > width and any(columns[n].rank for n in kept):
        kept.remove(max(kept, key=lambda n: columns[n].rank))
    while (excess := needed(natural) - width) > 0:
        wide = [n for n in kept if natural[n] > least[n]]
        if not wide:
            break
        _shorten(natural, least, wide, excess)
    return [natural[n] if n in kept else 0 for n in range(len(columns))]


def _shorten(sizes: list[int], least: Sequence[int], wide: Sequence[int], excess: int) -> None:
    """Take cells from the widest column, down to the next one or to its least."""
    widest, *others = sorted(wide, key=lambda n: -sizes[n])
    floor = max(least[widest], sizes[others[0]] - 1 if others else 0)
    sizes[widest] = max(floor, sizes[widest] - excess)
