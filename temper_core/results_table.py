"""A table of results that stays readable on a narrow terminal."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

LEAST_FOLDED = 32
"""The least width of the column that is folded. With less a table is printed as blocks."""
INDENT = " " * 4
GAP = " " * 2


class ResultsTable(Table):
    """A table without lines. Only its widest column is folded, and no cell is cut.

    If the terminal is too narrow for that, each row is a block of lines: its first cell, and below
    it the other cells with the heads of their columns. A row may have texts below it, which are
    folded to the whole width.
    """

    def __init__(self, heads: Sequence[str]) -> None:
        super().__init__(*heads, box=None, pad_edge=False)
        self._cells: list[tuple[str, ...]] = []
        self._below: list[Sequence[str]] = []

    def add_row(self, *cells: str, below: Sequence[str] = ()) -> None:  # type: ignore[override]
        """Add a row of texts, one for each column, and the texts *below* it."""
        super().add_row(*map(Text, cells))
        self._cells.append(cells)
        self._below.append(below)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table, or its blocks."""
        widths = [self._width(number) for number in range(len(self.columns))]
        widest = widths.index(max(widths))
        others = sum(widths) - widths[widest] + len(GAP) * (len(widths) - 1)
        if others + min(widths[widest], LEAST_FOLDED) > options.max_width:
            yield from self._blocks(options.max_width)
            return
        for number, column in enumerate(self.columns):
            column.no_wrap, column.overflow = number != widest, "fold"
        if not any(self._below):
            yield from super().__rich_console__(console, options)
            return
        widths[widest] = min(widths[widest], options.max_width - others)
        yield from self._with_texts(widths, options.max_width)

    def _width(self, number: int) -> int:
        head = Text(str(self.columns[number].header)).cell_len
        return max((head, *(Text(cells[number]).cell_len for cells in self._cells)))

    def _with_texts(self, widths: Sequence[int], width: int) -> Iterator[Table | Text]:
        """Yield a table for each row, all with columns of *widths*, and the texts below each."""
        for number, (cells, below) in enumerate(zip(self._cells, self._below, strict=True)):
            row = Table(box=None, pad_edge=False, show_header=number == 0)
            for column, own_width in zip(self.columns, widths, strict=True):
                row.add_column(
                    column.header, width=own_width, no_wrap=column.no_wrap, overflow="fold"
                )
            row.add_row(*map(Text, cells))
            yield row
            yield from _indented(below, width)

    def _blocks(self, width: int) -> Iterator[Text]:
        heads = [str(column.header) for column in self.columns]
        for cells, below in zip(self._cells, self._below, strict=True):
            yield Text(cells[0], style="bold", overflow="fold")
            named = zip(heads[1:], cells[1:], strict=True)
            pairs = (f"{head} {cell}".lstrip() for head, cell in named if cell)
            yield from _lines(_filled(pairs, width - len(INDENT)))
            yield from _indented(below, width)


def _indented(texts: Iterable[str], width: int) -> Iterator[Text]:
    for text in texts:
        yield from _lines(_filled([text], width - len(INDENT)))


def _lines(lines: Iterable[str]) -> Iterator[Text]:
    for line in lines:
        yield Text(line, overflow="fold")


def _filled(pairs: Iterable[str], width: int) -> Iterator[str]:
    """Yield indented lines of *pairs*. One that is longer than a line has lines of its own."""
    line = ""
    for pair in pairs:
        longer = f"{line}{GAP}{pair}" if line else pair
        if len(longer) <= width:
            line = longer
            continue
        if line:
            yield f"{INDENT}{line}"
        wrapped = textwrap.wrap(pair, width, subsequent_indent=GAP, break_on_hyphens=False)
        *full, line = wrapped or [""]
        for each in full:
            yield f"{INDENT}{each}"
        if full:
            yield f"{INDENT}{line}"
            line = ""
    if line:
        yield f"{INDENT}{line}"
