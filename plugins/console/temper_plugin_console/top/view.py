"""The state of the screen's view, and its change by a key. No I/O."""

from collections.abc import Callable, Mapping

from attrs import evolve, frozen

PANES = ("cpus", "layers", "pods", "threads", "waits")
SORTS: Mapping[str, str] = {"c": "cpu", "w": "wait", "n": "name"}
LONGEST_FILTER = 64
PAGE = 10
WHEEL_ROWS = 3
TO_THE_END = 1_000_000


Branch = tuple[str, ...]
"""A group of the tree of threads: pod, container and process, as far as they are given."""


@frozen
class View:
    """The pane that has most of the screen, its order, its filter and its scrolled rows.

    ``typed`` is the filter while it is being typed, None otherwise. ``all_folded`` is the state of
    the groups of the tree, and ``turned_branches`` those of the other state.
    """

    pane: str = "threads"
    sort: str = "cpu"
    kept: str = ""
    typed: str | None = None
    first: int = 0
    is_paused: bool = False
    is_helping: bool = False
    is_ended: bool = False
    is_tree: bool = False
    all_folded: bool = False
    turned_branches: frozenset[Branch] = frozenset()

    @property
    def filter(self) -> str:
        """The text that rows must contain, as far as it is typed."""
        return self.kept if self.typed is None else self.typed

    def is_folded(self, branch: Branch) -> bool:
        """Whether the tree shows a group without what is in it."""
        return self.all_folded != (branch in self.turned_branches)

    def turned(self, branch: Branch) -> "View":
        """Return the view with a group folded that was not, or the other way round."""
        return evolve(self, turned_branches=self.turned_branches ^ {branch})


def after_key(view: View, key: str) -> View:
    """Return *view* after *key*. Unknown keys change nothing."""
    if view.typed is not None:
        return _typed(view, view.typed, key)
    if key in _MEANINGS:
        return _MEANINGS[key](view)
    if key in SORTS:
        return evolve(view, sort=SORTS[key], first=0)
    if key in _STEPS:
        return evolve(view, first=max(0, view.first + _STEPS[key]))
    if key.isdecimal() and key.isascii() and 1 <= int(key) <= len(PANES):
        return evolve(view, pane=PANES[int(key) - 1], first=0)
    return view


def _typed(view: View, typed: str, key: str) -> View:
    if key == "enter":
        return evolve(view, kept=typed, typed=None, first=0)
    if key == "escape":
        return evolve(view, kept="", typed=None, first=0)
    if key in ("backspace", "kill"):
        return evolve(view, typed=typed[:-1] if key == "backspace" else "", first=0)
    if len(key) == 1:
        return evolve(view, typed=(typed + key)[:LONGEST_FILTER], first=0)
    return view


def _turned(view: View, by: int) -> View:
    number = (PANES.index(view.pane) + by) % len(PANES)
    return evolve(view, pane=PANES[number], first=0)


def _all_groups(view: View, *, are_folded: bool) -> View:
    return evolve(view, all_folded=are_folded, turned_branches=frozenset(), first=0)


_MEANINGS: Mapping[str, Callable[[View], View]] = {
    "q": lambda view: evolve(view, is_ended=True),
    " ": lambda view: evolve(view, is_paused=not view.is_paused),
    "/": lambda view: evolve(view, typed=""),
    "?": lambda view: evolve(view, is_helping=not view.is_helping),
    "h": lambda view: evolve(view, is_helping=not view.is_helping),
    "tab": lambda view: _turned(view, 1),
    "back-tab": lambda view: _turned(view, -1),
    "t": lambda view: evolve(view, pane="threads", is_tree=not view.is_tree, first=0),
    "-": lambda view: _all_groups(view, are_folded=True),
    "+": lambda view: _all_groups(view, are_folded=False),
    "escape": lambda view: evolve(view, kept="", is_helping=False, first=0),
    "home": lambda view: evolve(view, first=0),
}
_STEPS: Mapping[str, int] = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "page-up": -PAGE,
    "page-down": PAGE,
    "end": TO_THE_END,
    "wheel-up": -WHEEL_ROWS,
    "wheel-down": WHEEL_ROWS,
}
