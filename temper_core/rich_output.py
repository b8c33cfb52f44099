"""rich's console for results, whose text cannot control the terminal."""

import sys
from collections.abc import Iterable
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from temper_core.visible_text import own_sequences, printable, visible


class VisibleConsole(Console):
    """A console that makes all text visible before it adds colours.

    A string is printed as one line, with the line ends at its beginning and its end. Without
    *file* it writes to standard output.
    """

    def __init__(self, *, file: IO[str] | None = None, **options: Any) -> None:  # noqa: ANN401 - rich's
        target = cast(IO[str], _StandardOutput()) if file is None else file
        super().__init__(file=target, markup=False, highlight=False, emoji=False, **options)
        self.push_render_hook(_VisibleHook())

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - rich's signature
        """Print *objects* as rich does, each string as one line."""
        super().print(*map(_one_line, objects), **options)


def _one_line(value: object) -> object:
    if not isinstance(value, str) or value.isprintable():
        return value
    inner = value.strip("\n")
    before, _, after = value.partition(inner) if inner else (value, "", "")
    return f"{before}{printable(inner)}{after}"


class _VisibleHook(RenderHook):
    """Makes the text of everything that is printed visible."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(renderable) for renderable in renderables]


class _Visible:
    """A renderable whose text is made visible after its layout. The width of text is kept."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _visible_segments(console.render(self._inner, options))


def _visible_segments(segments: Iterable[Segment]) -> Iterable[Segment]:
    for segment in segments:
        text, style, control = segment
        yield segment if control else Segment(visible(text), style)


class _StandardOutput:
    """The present ``sys.stdout`` as rich's file. All control sequences in its text are rich's."""

    def write(self, text: str) -> int:
        has_sequences = "\x1b" in text
        return sys.stdout.write(own_sequences(text, sys.stdout) if has_sequences else text)

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stdout, name)
