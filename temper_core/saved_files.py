"""Files that a command writes in place of its text: the type of the option, and the writing.

Public through ``temper_core.console``.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from temper_core.errors import InputError
from temper_core.visible_text import printable

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root {{ color-scheme: light dark }} body {{ margin: 1em }} svg {{ max-width: 100% }}</style>
</head><body>
{picture}
</body></html>
"""
STYLE = """
text {{ font: 11px ui-monospace, Menlo, Consolas, monospace; fill: #222 }}
.head {{ font-weight: bold; font-size: 13px }}
{light}
@media (prefers-color-scheme: dark) {{
  svg {{ background: #16181c }} text {{ fill: #e6e6e6 }}
  {dark}
}}
"""


class SavedFile(click.Path):
    """The name of a file to write, which has one of *endings*, as ``.svg``."""

    def __init__(self, *endings: str) -> None:
        super().__init__(path_type=Path, dir_okay=False)
        self.endings = endings

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path. Fail for another ending."""
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in self.endings:
            self.fail(f"{str(path)!r} must end in {' or '.join(self.endings)}", param, ctx)
        return path


def save_text(path: Path, text: str) -> None:
    """Write *text*, and report that on standard error. Raise InputError if it cannot be written.

    The file takes its name once it is whole. A file of that name that is not regular is refused:
    a link may lead to any file of this user.
    """
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(f"{path} is not a regular file; name another")
        _replace(path, text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    click.echo(f"temper: wrote {path}", err=True)


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".temper-{os.getpid()}-{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(partial, flags, 0o666), "w", encoding="utf-8") as file:  # noqa: PTH123 - its flags
            file.write(text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def svg_picture(
    title: str, size: tuple[int, int], parts: Iterable[str], *, light: str = "", dark: str = ""
) -> str:
    """Return an SVG of *parts* below its *title*, for light and dark screens. It loads nothing.

    *size* is its width and its height. *light* and *dark* are further rules of its style.
    """
    width, height = size
    words = _escaped(title)
    style = STYLE.format(light=light, dark=dark)
    box = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box}>',
        f"<title>{words}</title><style>{style}</style>",
        f'<text class="head" x="4" y="16">{words}</text>',
        *parts,
        "</svg>",
    )
    return "\n".join(lines) + "\n"


def save_picture(path: Path, title: str, picture: str) -> None:
    """Write the SVG *picture*, in a page of its own if *path* ends in ``.html``.

    The page loads nothing, and runs no script. Raise InputError if it cannot be written.
    """
    if path.suffix == ".html":
        picture = PAGE.format(title=_escaped(title), picture=picture)
    save_text(path, picture)


def _escaped(title: str) -> str:
    from html import escape  # noqa: PLC0415 - 0.5 MB, and agents import this module, too

    return escape(printable(title))
