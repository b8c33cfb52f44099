"""The command line's kit: options, exit codes, JSON, tables, colours, progress and interruptions.

Results go to standard output, everything else to standard error. A table is folded to fit a
terminal and is never cut for a pipe. Text from outside is made printable before it is shown. The
streams and consoles make visible what a command forgot: see ``standard_output.deliver``.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.bounded_memory import bounded_memory
from temper_core.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INPUT, EXIT_MACHINE, TemperError
from temper_core.finite_range import FiniteRange
from temper_core.result_formats import document_text, output_formats
from temper_core.saved_files import SavedFile, save_picture, save_text, svg_picture
from temper_core.standard_output import write_bytes
from temper_core.suggestions import similar
from temper_core.visible_text import own_sequences, printable, visible
from temper_core.watching import watch_options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from temper_core.results_table import ResultsTable
    from temper_core.settings import Settings

__all__ = [
    "EXIT_CLEAN",
    "EXIT_FINDINGS",
    "EXIT_INPUT",
    "EXIT_MACHINE",
    "Column",
    "FiniteRange",
    "Progress",
    "Row",
    "SavedFile",
    "age",
    "bounded_memory",
    "columns",
    "document_text",
    "folded",
    "held_interruptions",
    "is_interrupted",
    "named",
    "output_formats",
    "output_option",
    "own_sequences",
    "plain_table",
    "print_bytes",
    "print_error",
    "print_json",
    "printable",
    "read_settings",
    "results_console",
    "save_picture",
    "save_text",
    "settings_option",
    "shown",
    "styled",
    "svg_picture",
    "sys_root_option",
    "table_of",
    "visible",
    "watch_options",
]

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], object]]

NARROWEST = 80
"""Columns of the narrowest table. rich would drop columns for a narrower terminal, which folds
lines by itself."""
PIPED_WIDTH = 10_000
"""Columns of a console without a terminal, so that nothing is folded for programs."""
WIDEST_COLUMN = 100
"""Letters to which ``columns`` widens a column. Otherwise one text of a megabyte, which any user
may write into an object of a cluster, would lengthen every line by a megabyte."""
LEAST_FOLDED = 20
"""Columns that ``folded`` needs. With less the terminal breaks the line itself."""
FOLDED = frozenset({"reason", "message", "fix", "what", "what to do"})
"""Columns of ``table_of`` whose text is folded. The others are kept on one line."""
MOST_NAMED = 5
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
INTERRUPTIONS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

settings_option = click.option(
    "--settings",
    "settings_path",
    type=click.Path(path_type=Path),
    help="The agent's settings file (TOML), which has its addresses.",
)
sys_root_option = click.option(
    "--sys-root",
    type=click.Path(path_type=Path),
    default=Path("/sys"),
    show_default=True,
    help="The root of sysfs, or a recorded copy of it.",
)
output_option = output_formats()


def read_settings(path: Path | None) -> "Settings":
    """Read the settings at *path*, or the default ones. Raise DocumentError for errors."""
    from temper_core.settings import load  # noqa: PLC0415 - slow

    return load(path).settings


def read_settings_to_act(path: Path | None) -> "Settings":
    """Read the settings of a command that writes what they name, or sends a token.

    Raises as ``read_settings``, and InputError if another user may change the file at *path*. The
    default file is not checked: the host's own agent trusts it, and its kill switch has to work.
    """
    from temper_core.errors import InputError  # noqa: PLC0415 - with commands that act
    from temper_core.foreign_writers import foreign_writer  # noqa: PLC0415
    from temper_core.settings.reader import DEFAULT_PATH  # noqa: PLC0415 - slow

    if path is not None and path != DEFAULT_PATH and (who := foreign_writer(path)):
        raise InputError(
            f"{path}: {who}; a command that acts takes only settings that nobody but root and "
            "this user may change"
        )
    return read_settings(path)


def print_json(value: object) -> None:
    """Print *value* as JSON, or as YAML if the running command got ``-o yaml``."""
    click.echo(document_text(value))


def print_bytes(content: bytes) -> None:
    """Write binary *content* to standard output. Raise InputError if that is a terminal."""
    write_bytes(content)


def shown(value: object) -> str:
    """Return a value as text for a table: ``-`` for None, two digits of a float."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value))
    return printable(str(value))


def age(seconds: float | None) -> str:
    """Return a time span in its largest unit: 12s, 5m, 3h, 2d."""
    if seconds is None:
        return "-"
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def named(names: Sequence[str]) -> str:
    """Return the first ``MOST_NAMED`` names, and the count of the others."""
    first = ", ".join(names[:MOST_NAMED])
    return f"{first} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else first


def styled(text: str, **style: Any) -> str:  # noqa: ANN401 - as click.style
    """Return *text* with a style of ``click.style``.

    It is plain without a terminal, with NO_COLOR (https://no-color.org) or with TERM=dumb.
    """
    is_plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR")
    if is_plain or os.environ.get("TERM") == "dumb":
        return text
    return own_sequences(click.style(printable(text), **style), sys.stdout)


def results_console() -> "Console":
    """Return rich's console for results."""
    from temper_core.rich_output import VisibleConsole  # noqa: PLC0415 - slow, for tables only

    console = VisibleConsole()
    width = max(console.width, NARROWEST) if console.is_terminal else PIPED_WIDTH
    return VisibleConsole(width=width)


def plain_table(*heads: str) -> "ResultsTable":
    """Return a table without lines, whose cells are folded and not cut."""
    from temper_core.results_table import ResultsTable  # noqa: PLC0415 - slow, for tables only

    return ResultsTable(heads)


def table_of(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> "Table | None":
    """Return *rows* as a table, None without rows. A column is a head and a function of a row."""
    from rich.table import Table  # noqa: PLC0415 - slow, and for tables only
    from rich.text import Text  # noqa: PLC0415 - the same

    if not rows:
        return None
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for head, _ in columns:
        table.add_column(head, no_wrap=head not in FOLDED, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(shown(read(row))) for _, read in columns))
    return table


def folded(text: str, indent: int = 0) -> str:
    """Return *text*, which begins at column *indent*, folded to the width of the terminal.

    Its further lines begin at the same column. No word is broken. Without a terminal the text is
    kept on one line, for programs.
    """
    line = printable(text)
    if not sys.stdout.isatty():
        return line
    import textwrap  # noqa: PLC0415 - with folded text only

    width = _terminal_width() - indent
    if width < LEAST_FOLDED:
        return line
    lines = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)


def columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], below: Sequence[Sequence[str]] = ()
) -> list[str]:
    """Return the lines of a table. *below* has the texts below each row, which are indented.

    Each column is as wide as its widest cell, but a cell of more than ``WIDEST_COLUMN`` letters
    lengthens its own line alone. A terminal that is too narrow for that gets a ``plain_table``.
    """
    cells = [[printable(cell) for cell in row] for row in (heads, *rows)]
    texts = [[printable(text) for text in each] for each in below] or [[] for _ in rows]
    widths = [min(max(map(len, column)), WIDEST_COLUMN) for column in zip(*cells, strict=True)]
    lines = []
    for row, under in zip(cells, [[], *texts], strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines += [line.rstrip(), *(f"    {text}" for text in under)]
    if not sys.stdout.isatty() or max(map(len, lines)) <= _terminal_width():
        return lines
    return _narrow_lines(cells, texts)


def _narrow_lines(cells: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> list[str]:
    import io  # noqa: PLC0415 - with a narrow terminal only

    from temper_core.rich_output import VisibleConsole  # noqa: PLC0415 - slow

    table = plain_table(*cells[0])
    for row, under in zip(cells[1:], texts, strict=True):
        table.add_row(*row, below=under)
    console = VisibleConsole(file=io.StringIO(), width=max(_terminal_width(), NARROWEST))
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def _terminal_width() -> int:
    import shutil  # noqa: PLC0415 - with a terminal only

    return shutil.get_terminal_size().columns


class Progress:
    """A line on standard error, redrawn on a terminal. Elsewhere only the last is printed."""

    def __init__(self, hint: str = "") -> None:
        self._hint = f"; {hint}" if hint else ""
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._width = 0

    def show(self, line: str) -> None:
        """Show the state of the work."""
        if self._is_terminal:
            self._write(f"{line}{self._hint}", ends=False)

    def end(self, line: str) -> None:
        """Show the result."""
        self._write(line, ends=True)

    def _write(self, line: str, *, ends: bool) -> None:
        start = own_sequences("\r", sys.stderr) if self._is_terminal else ""
        click.echo(f"{start}{printable(line).ljust(self._width)}", err=True, nl=ends)
        self._width = 0 if ends or not self._is_terminal else len(line)


def print_error(error: TemperError | click.ClickException, program: str = "temper") -> None:
    """Print the lines of *error* to standard error, each as one line whatever its text.

    A mistyped choice gets the choice that was probably meant.
    """
    if isinstance(error, click.ClickException):
        message = f"{error.message}{_choice_meant(error)}"
        vars(error)["message"] = printable(message)  # final to a type checker
        error.show()
        return
    for line in error.lines:
        click.echo(f"{program}: {printable(line)}", err=True)


def _choice_meant(error: click.ClickException) -> str:
    """Return what to add to the message on a value that is none of its option's choices."""
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param else None
    if not isinstance(kind, click.Choice):
        return ""
    # click keeps the value in the message only: "'tabel' is not one of 'table', 'json'."
    value = error.message.partition(" is not one of ")[0]
    meant = similar(value.strip("'\""), map(str, kind.choices))
    return f" Did you mean {meant!r}?" if meant else ""


@contextmanager
def held_interruptions() -> Iterator[None]:
    """Hold SIGINT, SIGTERM and SIGHUP back until ``is_interrupted`` takes them.

    SIGINT interrupts a background job too, although a shell starts it with SIGINT ignored. SIGHUP
    does not interrupt a process that nohup started.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _interruptions())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_interrupted(wait_s: float) -> bool:
    """Wait for *wait_s* seconds, or until an interruption. Return whether there was one."""
    return signal.sigtimedwait(_interruptions(), max(0.0, wait_s)) is not None


def _interruptions() -> AbstractSet[signal.Signals]:
    # sigtimedwait takes a blocked signal even if it is ignored.
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return INTERRUPTIONS - {signal.SIGHUP} if is_hangup_ignored else INTERRUPTIONS
