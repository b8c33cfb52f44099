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

    ``least`` is the width in cells to which it may be shortened, but not below that of the title. A
    column of numbers, which are at its right, is never shortened.
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
    sizes = [_natural_width(column, n, cells) for n, column in enumerate(columns)]
    least = [
        size if column.right else min(size, max(len(column.title), column.least))
        for column, size in zip(columns, sizes, strict=True)
    ]
    kept = _kept(columns, cells, least, width)
    _shorten_to(width, sizes, least, kept)
    return [size if n in kept else 0 for n, size in enumerate(sizes)]


def _natural_width(column: Column, number: int, cells: Sequence[Sequence[str]]) -> int:
    """Return the width that shows the title and every cell of a column whole."""
    from rich.cells import cell_len

    return max([len(column.title), *(cell_len(row[number]) for row in cells)])


def _kept(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], least: Sequence[int], width: int
) -> list[int]:
    """Return the columns that have content and fit at their least width, by number."""
    kept = [
        n
        for n, column in enumerate(columns)
        if column.rank == 0 or any(row[n].strip() for row in cells)
    ]
    while _total(least, kept) > width and any(columns[n].rank for n in kept):
        kept.remove(max(kept, key=lambda n: columns[n].rank))
    return kept


def _total(sizes: Sequence[int], kept: Sequence[int]) -> int:
    """Return the width of a line of the columns *kept*."""
    return sum(sizes[n] for n in kept) + GAP * (len(kept) - 1)


def _shorten_to(width: int, sizes: list[int], least: Sequence[int], kept: Sequence[int]) -> None:
    """Shorten the widest columns until a line fits in *width*, or all have their least width."""
    while (excess := _total(sizes, kept) - width) > 0:
        wide = [n for n in kept if sizes[n] > least[n]]
        if not wide:
            return
        _shorten(sizes, least, wide, excess)


def _shorten(sizes: list[int], least: Sequence[int], wide: Sequence[int], excess: int) -> None:
    """Take cells from the widest column, down to the next one or to its least."""
    widest, *others = sorted(wide, key=lambda n: -sizes[n])
    floor = max(least[widest], sizes[others[0]] - 1 if others else 0)
    sizes[widest] = max(floor, sizes[widest] - excess)
