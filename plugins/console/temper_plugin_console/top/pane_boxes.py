"""Panes as boxes: the number of lines each needs, and its lines for a given height."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from temper_core.observed import Row
from temper_plugin_console.top.columns import table_lines
from temper_plugin_console.top.cpu_map import map_lines
from temper_plugin_console.top.history import History, history_key, sparkline
from temper_plugin_console.top.panes import COLUMNS, TREE, listed
from temper_plugin_console.top.places import Place
from temper_plugin_console.top.processes import Process
from temper_plugin_console.top.view import PANES, View
from temper_plugin_console.top.waits import window_of

if TYPE_CHECKING:
    from rich.text import Text

NO_WINDOW = "no wake-ups were recorded (off by default): see temper wakes"


@frozen
class PaneInput:
    """The last observation, and the error if there is no newer one.

    The load by CPU, and the processes of its threads by id, are this host's own. The history is
    that of the looks so far.
    """

    document: Row
    trouble: str = ""
    busy: Mapping[int, float] = field(factory=dict)
    processes: Mapping[int, Process] = field(factory=dict)
    history: History = field(factory=dict)


@frozen
class PaneBox:
    """One pane: a title, and either rows of a table or lines that are ready."""

    name: str
    title: "Text"
    width: int
    rows: Sequence[Row] = ()
    ready: "Sequence[Text] | None" = None
    is_tree: bool = False

    @property
    def needed(self) -> int:
        """The number of lines of the whole pane, titles included."""
        return self._titles + (len(self.rows) if self.ready is None else len(self.ready))

    @property
    def _titles(self) -> int:
        return 2 if self.ready is None else 1

    def last_start(self, height: int) -> int:
        """Return the most rows that can be scrolled away with *height* lines still full."""
        return max(0, self.needed - max(height, self._titles))

    def lines(self, height: int, first: int = 0) -> "list[Text]":
        """Return at most *height* lines, without the first *first* rows."""
        room = max(0, height - self._titles)
        if self.ready is not None:
            return [self.title, *self.ready[first : first + room]][:height]
        shown = self.rows[first : first + room]
        columns = TREE if self.is_tree else COLUMNS[self.name]
        return [self.title, *table_lines(columns, shown, self.width)][:height]

    def places(self, height: int, first: int = 0) -> list[Place]:
        """Return the place of each line that ``lines`` returns."""
        usual = Place(self.name, width=self.width)
        room = max(0, height - self._titles)
        if self.ready is not None:
            return [usual] * min(height, 1 + len(self.ready[first : first + room]))
        shown = self.rows[first : first + room]
        branches = [evolve(usual, branch=row.get("branch", ())) for row in shown]
        return [usual, evolve(usual, has_heads=True), *branches][:height]


def boxes(pane_input: PaneInput, view: View, panes: Sequence[str], width: int) -> list[PaneBox]:
    """Return the boxes of *panes*, each *width* cells wide."""
    return [_box(pane, pane_input, view, width) for pane in panes]


def _box(pane: str, pane_input: PaneInput, view: View, width: int) -> PaneBox:
    from rich.text import Text

    if pane == "cpus":
        ready = map_lines(pane_input.document, pane_input.busy, width)
        return PaneBox(pane, _title(pane, "", view), width, ready=ready)
    if pane == "waits" and not window_of(pane_input.document):
        return PaneBox(pane, _title(pane, "", view), width, ready=[Text(NO_WINDOW, "dim")])
    listed_rows = [
        {**row, "history": sparkline(pane_input.history.get(history_key(pane, row), ()))}
        for row in listed(pane, pane_input.document, view, pane_input.processes)
    ]
    filtered = f", only {view.filter!r}" if view.filter else ""
    if not listed_rows:
        return PaneBox(pane, _title(pane, f"none{filtered}", view), width, ready=[])
    is_tree = pane == "threads" and view.is_tree
    shape = "a tree, " if is_tree else ""
    title = _title(pane, f"{len(listed_rows)}, {shape}sorted by {view.sort}{filtered}", view)
    return PaneBox(pane, title, width, listed_rows, is_tree=is_tree)


def _title(pane: str, remark: str, view: View) -> "Text":
    from rich.text import Text

    text = f"[{PANES.index(pane) + 1}] {pane}  {remark}".rstrip()
    return Text(text, "reverse" if pane == view.pane else "underline")
