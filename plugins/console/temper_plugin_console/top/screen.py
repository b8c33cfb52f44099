"""The whole screen as lines: header, violations, panes, keys. No I/O."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from temper_core.observed import Row, count, headline, number, pressure_of, rows, table, text
from temper_plugin_console.top.pane_boxes import PaneBox, PaneInput, boxes
from temper_plugin_console.top.panes import share_text
from temper_plugin_console.top.view import PANES, View

if TYPE_CHECKING:
    from rich.text import Text

LEAST_LINES = 3
SIDE_BY_SIDE = 190
GAP = 2
LEFT_SHARE = 0.58
MIB = 1 << 20
KEYS = "q quit  1-5/tab pane  c/w/n sort  / filter  space pause  ? help"
HELP = (
    "q, Ctrl-C       end",
    "1-5, tab        give a pane most of the screen",
    "c, w, n         sort by CPU, by waiting, by name",
    "/               show only what holds a text: pod, thread, process, layer; Enter keeps it,",
    "                Escape takes it away",
    "arrows, j, k    scroll; PageUp, PageDown, Home and End too",
    "space           pause: the agent is not asked meanwhile",
    "",
    "layer?          inferred, not the engine's own record",
    "(layer)         where the plan would have it; nothing is enforced",
    "~50%            added up from the threads last seen on the CPU",
    "-               this way of observing cannot tell",
)


@frozen
class Screen:
    """The lines of a screen, and how far its chosen pane is scrolled in truth."""

    lines: "Sequence[Text]"
    first: int = 0


def whole_text(seen: PaneInput, width: int) -> "list[Text]":
    """Return every pane in full, for a pipe or a single look."""
    lines = _header(seen.document)
    for box in boxes(seen, View(), PANES, width):
        lines += [_blank(), *box.lines(box.needed)]
    return [_trouble(seen), *lines] if seen.trouble else lines


def screen(seen: PaneInput, view: View, width: int, height: int) -> Screen:
    """Return exactly *height* lines of at most *width* cells."""
    header = _header(seen.document)
    body, first = max(0, height - len(header) - 1), 0
    if view.is_helping:
        lines = _fill(_help(), body)
    elif width >= SIDE_BY_SIDE:
        lines, first = _beside(seen, view, width, body)
    else:
        lines, first = _stacked(boxes(seen, view, PANES, width), view, body)
    whole = [*[*header, *lines][: max(0, height - 1)], _footer(seen, view)][:height]
    for line in whole:
        line.truncate(width, overflow="ellipsis")
    return Screen(whole, first)


def _blank() -> "Text":
    from rich.text import Text

    return Text()


def _help() -> "list[Text]":
    from rich.text import Text

    return [Text(line) for line in HELP]


def _fill(lines: "list[Text]", height: int) -> "list[Text]":
    return lines[:height] + [_blank() for _ in range(height - len(lines))]


def _trouble(seen: PaneInput) -> "Text":
    from rich.text import Text

    from temper_core.console import shown

    return Text(f"{shown(seen.trouble)} (below is what was last seen)", "red")


def _header(document: Row) -> "list[Text]":
    from rich.text import Text

    from temper_core.console import shown

    violations = rows(document, "violations")
    told = "no violations"
    if violations:
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        named = f"{text(first, 'invariant')} {text(first, 'subject')}: {text(first, 'message')}"
        told = f"violations {len(violations)}: {named}{more}"
    defects = document.get("defects")
    told += f"  defects {len(defects)}" if isinstance(defects, list) and defects else ""
    is_error = any(text(row, "severity") == "error" for row in violations)
    style = ("red" if is_error else "yellow") if violations else "green"
    return [
        Text(shown(headline(document)), "bold"),
        Text(shown(_observing(document))),
        Text(shown(told), style),
    ]


def _observing(document: Row) -> str:
    """Say how the node is looked at, what that costs, and how it is under pressure."""
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
    """Say what helper processes of instruments cost on top. Empty where none run."""
    costs = overhead.get("instruments")
    rows = [each for each in costs.values() if isinstance(each, Mapping)] if costs else []
    helpers = sum(count(each, "helpers") or 0 for each in rows)
    if not helpers:
        return ""
    share = sum(number(each, "helper_cpu_ratio") or 0.0 for each in rows)
    memory = sum(number(each, "helper_memory_bytes") or 0.0 for each in rows) / MIB
    return f"{helpers} helpers {share:.2%}, {memory:.0f} MiB"


def _footer(seen: PaneInput, view: View) -> "Text":
    from rich.text import Text

    if view.typed is not None:
        return Text(f"/{view.typed}_", "bold")
    if seen.trouble:
        return _trouble(seen)
    return Text(
        f"PAUSED  {KEYS}" if view.is_paused else KEYS, "yellow" if view.is_paused else "dim"
    )


def arranged(needed: Mapping[str, int], chosen: str, height: int) -> Mapping[str, int]:
    """Share *height* lines out: half for the *chosen* pane, the others alike, nothing unused."""
    given = dict.fromkeys(needed, 0)
    left = height
    if chosen in needed:
        given[chosen] = min(needed[chosen], height, max(LEAST_LINES, (height + 1) // 2))
        left -= given[chosen]
    others = [pane for pane in needed if pane != chosen]
    for pane in others:
        least = min(LEAST_LINES, needed[pane])
        if least <= left:
            given[pane] = least
            left -= least
    shown = [pane for pane in others if given[pane]]
    while left > 0 and (hungry := [pane for pane in shown if given[pane] < needed[pane]]):
        for pane in hungry[:left]:
            given[pane] += 1
        left -= min(left, len(hungry))
    if chosen in needed:
        given[chosen] = min(needed[chosen], given[chosen] + left)
    return given


def _stacked(panes: Sequence[PaneBox], view: View, height: int) -> "tuple[list[Text], int]":
    """Put *panes* below one another. Return how far the chosen one is scrolled, too."""
    given = arranged({box.name: box.needed for box in panes}, view.pane, height)
    lines, first = [], 0
    for box in panes:
        start = 0
        if box.name == view.pane:
            start = first = min(view.first, box.last_start(given[box.name]))
        lines += box.lines(given[box.name], start)
    return _fill(lines, height), first


def _beside(seen: PaneInput, view: View, width: int, height: int) -> "tuple[list[Text], int]":
    """Put the chosen pane on the left, and all others on the right."""
    from rich.text import Text

    left_width = int(width * LEFT_SHARE)
    others = [pane for pane in PANES if pane != view.pane]
    left, first = _stacked(boxes(seen, view, (view.pane,), left_width), view, height)
    right, _ = _stacked(boxes(seen, view, others, width - left_width - GAP), view, height)
    lines = []
    for one, other in zip(left, right, strict=True):
        one.truncate(left_width, overflow="ellipsis", pad=True)
        lines.append(Text.assemble(one, " " * GAP, other))
    return lines, first
