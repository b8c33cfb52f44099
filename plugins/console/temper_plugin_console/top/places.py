"""The content of each place of a screen, and the change of the view by a click there. No I/O."""

import re
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from temper_plugin_console.top.view import Branch, View

CLICK = re.compile(r"click (\d+) (\d+)")
WORD = re.compile(r"\S+")
SORTED_BY: Mapping[str, Mapping[str, str]] = {
    "layers": {"layer": "name", "used": "cpu", "fallback": "wait"},
    "pods": {"pod": "name", "used": "cpu", "delay": "wait"},
    "threads": {"thread": "name", "used": "cpu", "wait": "wait", "waiting": "wait"},
}
"""The order that a click on the head of a column chooses, by pane."""


@frozen
class Place:
    """A part of a line that belongs to a pane, from the cell ``left`` on.

    ``branch`` is that of a group's row in the tree. ``has_heads`` is true of the line with the
    heads of columns.
    """

    pane: str
    left: int = 0
    width: int = 0
    branch: Branch = ()
    has_heads: bool = False

    def has(self, column: int) -> bool:
        """Whether *column*, from 0, is in the place."""
        return self.left <= column < self.left + self.width


def clicked(key: str) -> tuple[int, int] | None:
    """Return column and line of a click, both from 0, None for another key."""
    found = CLICK.fullmatch(key)
    return (int(found[1]) - 1, int(found[2]) - 1) if found else None


def after_click(view: View, places: Sequence[Place], line: str, column: int) -> View:
    """Return *view* after a click on *line*, which has *places*, at *column*.

    A click chooses the pane. On the head of a column it sorts, and on a group of the tree it folds
    or unfolds the group.
    """
    place = next((place for place in places if place.has(column)), None)
    if place is None:
        return view
    if place.branch:
        view = view.turned(place.branch)
    elif place.has_heads:
        order = SORTED_BY.get(place.pane, {}).get(_word_at(line, column))
        view = evolve(view, sort=order, first=0) if order else view
    return view if place.pane == view.pane else evolve(view, pane=place.pane, first=0)


def _word_at(line: str, column: int) -> str:
    words = (word for word in WORD.finditer(line) if word.start() <= column < word.end())
    return next((word[0] for word in words), "")
