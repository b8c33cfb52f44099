"""The loop of the live screen: draw it, wait for a key or an answer, repeat."""

from typing import TYPE_CHECKING

from attrs import evolve

from temper_plugin_console.top.looks import ObservationPoller, threads_for
from temper_plugin_console.top.places import after_click, clicked
from temper_plugin_console.top.screen import Screen, screen
from temper_plugin_console.top.terminal import HUNG_UP, RESIZED, Terminal, full_screen
from temper_plugin_console.top.view import View, after_key

if TYPE_CHECKING:
    from rich.console import Console

UNTIL_SOMETHING_HAPPENS = 3_600.0


def watch(
    console: "Console",
    looks: ObservationPoller,
    interval: float,
    most: int | None,
    *,
    has_mouse: bool = False,
) -> None:
    """Show the observations of *looks* until q is pressed, or until *most* were shown."""
    with full_screen(console, has_mouse=has_mouse) as (terminal, bell):
        looks.call_back(bell.ring)
        _Watching(terminal, looks, interval).run(most)


class _Watching:
    """One session at the terminal."""

    def __init__(self, terminal: Terminal, looks: ObservationPoller, interval: float) -> None:
        self._terminal = terminal
        self._looks = looks
        self._interval = interval
        self._view = View()
        self._seen = looks.seen
        self._drawn = Screen(())

    def run(self, most: int | None) -> None:
        shown = 1
        self._draw()
        while not self._view.is_ended and shown != most:
            has_changed = self._listen()
            if self._looks.take_answer() and not self._view.is_paused:
                self._seen, has_changed = self._looks.seen, True
                shown += 1
            if has_changed:
                self._draw()

    def _listen(self) -> bool:
        """Wait for a key, an answer or the next poll. Return whether to draw the screen."""
        keys = self._terminal.wait(self._pause())
        for key in keys:
            if key == HUNG_UP:
                self._view = evolve(self._view, is_ended=True)
            elif key != RESIZED:
                self._view = self._after(key)
        return bool(keys)

    def _after(self, key: str) -> View:
        place = clicked(key)
        if place is None:
            return after_key(self._view, key)
        column, line = place
        if line >= len(self._drawn.places):
            return self._view
        text = self._drawn.lines[line].plain
        return after_click(self._view, self._drawn.places[line], text, column)

    def _pause(self) -> float:
        if self._view.is_paused:
            return UNTIL_SOMETHING_HAPPENS
        threads = threads_for(self._view, self._terminal.size()[1])
        seconds = self._looks.due_in(self._interval, threads)
        if seconds > 0:
            return seconds
        self._looks.start(threads)
        return self._interval

    def _draw(self) -> None:
        width, height = self._terminal.size()
        self._drawn = screen(self._seen, self._view, width, height)
        self._view = evolve(self._view, first=self._drawn.first)
        self._terminal.draw(self._drawn.lines)
