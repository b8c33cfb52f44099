"""A screen as a picture: SVG that loads nothing from elsewhere."""

import io
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core import VisibleConsole
from temper_core.console import SavedFile, save_text

if TYPE_CHECKING:
    from rich.console import RenderableType

USUAL_WIDTH, LEAST_WIDTH = 120, 80
"""Columns of a picture that is not as wide as the terminal."""
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font-family: "Fira Code", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""The template of ``rich.console.Console.export_svg``, without fonts of another site."""


save_option = click.option(
    "--save",
    metavar="FILE.svg",
    type=SavedFile(".svg"),
    help="Write a picture in place of the text.",
)


def picture_width() -> int:
    """Return the columns of a picture: those of the terminal, or ``USUAL_WIDTH`` without one."""
    if not sys.stdout.isatty():
        return USUAL_WIDTH
    return max(LEAST_WIDTH, shutil.get_terminal_size().columns)


def save(path: Path, title: str, *parts: "RenderableType") -> None:
    """Write *parts* below each other as a picture. Raise InputError if it cannot be written."""
    console = VisibleConsole(
        file=io.StringIO(), record=True, width=picture_width(), force_terminal=True
    )
    for part in parts:
        console.print(part)
    # The id of its styles: rich would take a hash of all of the text.
    text = console.export_svg(title=title, code_format=FORMAT, unique_id="temper")
    save_text(path, text)
