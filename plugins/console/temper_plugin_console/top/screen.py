"""The whole screen as lines: header, violations, panes, keys. No I/O."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from temper_core.observed import Row, count, headline, number, pressure_of, rows, table, text
from temper_plugin_console.top.pane_boxes import PaneBox, PaneInput, boxes
from temper_plugin_console.top.panes import share_text
from temper_plugin_console.top.places import Place
from temper_plugin_console.top.view import PANES, View

if TYPE_CHECKING:
    from rich.text import Text

LEAST_LINES = 3
SIDE_BY_SIDE = 190
GAP = 2
LEFT_SHARE = 0.58
MIB = 1 << 20
KEYS = "q quit  1-5/tab pane  c/w/n sort  t tree  / filter  space pause  ? help"
HELP = (
    "q, Ctrl-C       end",
    "1-5, tab        give a pane most of the screen",
    "c, w, n         sort by CPU, by waiting, by name",
    "t, -, +         threads as a tree; fold all groups, unfold them",
    "mouse           click: choose a pane, sort by a column, fold a group; the wheel scrolls",
    "/               show only rows with a text: pod, thread, process, user, layer; Enter keeps",
    "                it, Escape removes it",
    "arrows, j, k    scroll; PageUp, PageDown, Home and End too",
    "space           pause: the agent is not polled meanwhile",
    "",
    "layer?          inferred, not the engine's own record",
    "(layer)         the layer of the plan; nothing is enforced",
    "used, delay     of one CPU: 200% is the time of two",
    "history         CPU used in the last looks, the most of them as a whole bar",
    "memory          of the pod, or of the thread's whole process",
    "~50%            the sum of the threads last seen on the CPU",
    "-               not measured by this tier of observation",
)


_Body = tuple["list[Text]", int, Sequence[Sequence[Place]]]
"""Lines of panes, the rows by which the chosen one is scrolled, and the places of each line."""


@frozen
class Screen:
    """The lines of a screen, and the rows by which its chosen pane is really scrolled.

    ``places`` has the places of each line, none for lines of no pane.
    """

    lines: "Sequence[Text]"
    first: int = 0
    places: Sequence[Sequence[Place]] = ()


def whole_text(pane_input: PaneInput, width: int, *, folds: bool = True) -> "list[Text]":
    """Return every pane in full, for a pipe or a single look.

    The lines above the panes are folded to *width*, unless *folds* is false, as for a pipe.
    """
    header = _header(pane_input.document)
    lines = [part for line in header for part in _folded(line, width)] if folds else header
    for box in boxes(pane_input, View(), PANES, width):
        lines += [_blank(), *box.lines(box.needed)]
    return [_trouble(pane_input), *lines] if pane_input.trouble else lines


def screen(pane_input: PaneInput, view: View, width: int, height: int) -> Screen:
    """Return exactly *height* lines of at most *width* cells."""
    header = _header(pane_input.document)
    body, first = max(0, height - len(header) - 1), 0
    places: Sequence[Sequence[Place]] = ()
    if view.is_helping:
        lines = _fill(_help(), body)
    elif width >= SIDE_BY_SIDE:
        lines, first, places = _beside(pane_input, view, width, body)
    else:
        lines, first, places = _stacked(boxes(pane_input, view, PANES, width), view, body)
    whole = [*[*header, *lines][: max(0, height - 1)], _footer(pane_input, view)][:height]
    for line in whole:
        line.truncate(width, overflow="ellipsis")
    return Screen(whole, first, [*[()] * len(header), *places][:height])


def _folded(line: "Text", width: int) -> "Iterator[Text]":
    from rich.text import Text

    for part in textwrap.wrap(line.plain, width, break_on_hyphens=False):
        yield Text(part, line.style)


def _blank() -> "Text":
    from rich.text import Text

    return Text()


def _help() -> "list[Text]":
    from rich.text import Text

    return [Text(line) for line in HELP]


def _fill(lines: "list[Text]", height: int) -> "list[Text]":
    return lines[:height] + [_blank() for _ in range(height - len(lines))]


def _trouble(pane_input: PaneInput) -> "Text":
    from rich.text import Text

    from temper_core.console import shown

    return Text(f"{shown(pane_input.trouble)} (below is the last observation)", "red")


def _header(document: Row) -> "list[Text]":
    from rich.text import Text

    from temper_core.console import shown

    violations = rows(document, "violations")
    summary = "no violations"
    if violations:
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        violation = f"{text(first, 'invariant')} {text(first, 'subject')}: {text(first, 'message')}"
        summary = f"violations {len(violations)}: {violation}{more}"
    defects = document.get("defects")
    summary += f"  defects {len(defects)}" if isinstance(defects, list) and defects else ""
    is_error = any(text(row, "severity") == "error" for row in violations)
    style = ("red" if is_error else "yellow") if violations else "green"
    return [
        Text(shown(headline(document)), "bold"),
        Text(shown(_observing(document))),
        Text(shown(summary), style),
    ]


def _observing(document: Row) -> str:
    """Return the line with the tier of observation, its cost, and the node's pressure."""
    observing, overhead = table(document, "observing"), table(document, "overhead")
    tier = text(observing, "tier")
    cost = [number(overhead, f"{part}_cpu_ratio") or 0.0 for part in ("user", "kernel")]
    memory = (number(overhead, "memory_bytes") or 0.0) / MIB
    period = number(observing, "period_s") or number(overhead, "period_s") or 0.0
    parts = [
        f"tier {tier}" if tier else "",
        f"every {period:g} s",
        f"cost {sum(cost):.2%} of a core, {memory:.0f} MiB",
        _helpers(overhead),
        f"{count(overhead, 'threads_seen') or 0} threads",
        *(
            f"{name} {share_text(pressure_of(document, resource=resource))}"
            for name, resource in (("psi cpu", "cpu"), ("io", "io"), ("mem", "memory"))
        ),
        text(observing, "stretched"),
        text(observing, "reason"),
    ]
    return "  ".join(part for part in parts if part)


def _helpers(overhead: Row) -> str:
    """Return the additional cost of instruments' helper processes, empty if none run."""
    costs = overhead.get("instruments")
    rows = [cost for cost in costs.values() if isinstance(cost, Mapping)] if costs else []
    helpers = sum(count(cost, "helpers") or 0 for cost in rows)
    if not helpers:
        return ""
    share = sum(number(cost, "helper_cpu_ratio") or 0.0 for cost in rows)
    memory = sum(number(cost, "helper_memory_bytes") or 0.0 for cost in rows) / MIB
    return f"{helpers} helpers {share:.2%}, {memory:.0f} MiB"


def _footer(pane_input: PaneInput, view: View) -> "Text":
    from rich.text import Text

    if view.typed is not None:
        return Text(f"/{view.typed}_", "bold")
    if pane_input.trouble:
        return _trouble(pane_input)
    return Text(
        f"PAUSED  {KEYS}" if view.is_paused else KEYS, "yellow" if view.is_paused else "dim"
    )


def arranged(needed: Mapping[str, int], chosen: str, height: int) -> Mapping[str, int]:
    """Distribute *height* lines: half to the *chosen* pane, the rest evenly, none unused."""
    heights = dict.fromkeys(needed, 0)
    left = height
    if chosen in needed:
        heights[chosen] = min(needed[chosen], height, max(LEAST_LINES, (height + 1) // 2))
        left -= heights[chosen]
    others = [pane for pane in needed if pane != chosen]
    for pane in others:
        least = min(LEAST_LINES, needed[pane])
        if least <= left:
            heights[pane] = least
            left -= least
    shown = [pane for pane in others if heights[pane]]
    while left > 0 and (short := [pane for pane in shown if heights[pane] < needed[pane]]):
        for pane in short[:left]:
            heights[pane] += 1
        left -= min(left, len(short))
    if chosen in needed:
        heights[chosen] = min(needed[chosen], heights[chosen] + left)
    return heights


def _stacked(panes: Sequence[PaneBox], view: View, height: int) -> "_Body":
    """Put *panes* below one another."""
    heights = arranged({box.name: box.needed for box in panes}, view.pane, height)
    first = 0
    lines: list[Text] = []
    places: list[Sequence[Place]] = []
    for box in panes:
        start = 0
        if box.name == view.pane:
            start = first = min(view.first, box.last_start(heights[box.name]))
        lines += box.lines(heights[box.name], start)
        places += [(place,) for place in box.places(heights[box.name], start)]
    return _fill(lines, height), first, places + [()] * (height - len(places))


def _beside(pane_input: PaneInput, view: View, width: int, height: int) -> "_Body":
    """Put the chosen pane on the left, and all others on the right."""
    from rich.text import Text

    left_width = int(width * LEFT_SHARE)
    others = [pane for pane in PANES if pane != view.pane]
    left, first, here = _stacked(boxes(pane_input, view, (view.pane,), left_width), view, height)
    right_width = width - left_width - GAP
    right, _, there = _stacked(boxes(pane_input, view, others, right_width), view, height)
    lines = []
    for left_line, right_line in zip(left, right, strict=True):
        left_line.truncate(left_width, overflow="ellipsis", pad=True)
        lines.append(Text.assemble(left_line, " " * GAP, right_line))
    moved = [[evolve(place, left=left_width + GAP) for place in places] for places in there]
    return lines, first, [[*places, *beside] for places, beside in zip(here, moved, strict=True)]
