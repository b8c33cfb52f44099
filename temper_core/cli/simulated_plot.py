"""A simulation as a picture: the layers of each pod over time, the changes, the violations.

The picture is SVG, alone or in a page of HTML. Neither loads anything from elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core.saved_files import save_picture, svg_picture
from temper_core.visible_text import printable

WIDTH, LEFT, RIGHT, TOP = 960, 220, 20, 34
LANE, BAR, AXIS = 22, 14, 26
LETTER = 6.6
"""The width of a letter in the picture, in its units. It decides which names fit."""
MOST_LANES = 400
SHORTEST_S = 0.001
STEPS_S = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400)
MOST_TICKS = 12
COLOURS = ("#2f7ed8", "#3d9970", "#b8860b", "#8a5cc2", "#c2527a", "#0f8b8d", "#7a7a7a", "#9a6b3f")
LIGHT = """
.in { fill: #fff }
.axis { stroke: #ccc } .change { stroke: #222; stroke-dasharray: 3 3 } .violation { fill: #c62828 }
"""
DARK = ".in { fill: #fff } .axis { stroke: #444 } .change { stroke: #e6e6e6 }"


@frozen
class Span:
    """A time of a lane in seconds after the first look, with its name and a class or a colour."""

    begins_s: float
    ends_s: float
    name: str
    look: str


def save_plot(path: Path, document: Mapping[str, Any]) -> None:
    """Write the picture of a simulation, by its JSON *document*. Raise InputError if it cannot."""
    save_picture(path, _head(document), plot(document))


def plot(document: Mapping[str, Any]) -> str:
    """Return the SVG of a simulation, by its JSON *document* (``docs/recordings.md``)."""
    end_s = max(float(document["recording"]["seconds"]), SHORTEST_S)
    lanes = {**_layers_of_pods(document, end_s), **_violations(document, end_s)}
    shown = dict(list(lanes.items())[:MOST_LANES])
    head = _head(document)
    if len(lanes) > len(shown):
        head += f"; {len(lanes) - len(shown)} more lanes are left out"
    scale = (WIDTH - LEFT - RIGHT) / end_s
    bottom = TOP + LANE * max(1, len(shown))
    parts = [
        *_axis(end_s, scale, bottom),
        *(part for place, lane in enumerate(shown.items()) for part in _lane(place, *lane, scale)),
        *_changes(document, scale, bottom),
    ]
    return svg_picture(head, (WIDTH, bottom + AXIS), parts, light=LIGHT, dark=DARK)


def _head(document: Mapping[str, Any]) -> str:
    recording = document["recording"]
    return f"{recording['node']}, {recording['seconds']:g} s from {recording['began']}"


def _text(value: str) -> str:
    return escape(printable(value))


def _layers_of_pods(document: Mapping[str, Any], end_s: float) -> Mapping[str, list[Span]]:
    """Return a lane for each pod, with a span for each time in the same layers."""
    lanes: dict[str, list[Span]] = {}
    current: dict[str, tuple[float, str]] = {}
    colours: dict[str, str] = {}

    def end(pod: str, at_s: float) -> None:
        begun_s, layers = current.pop(pod, (at_s, ""))
        if layers:
            colour = colours.setdefault(layers, COLOURS[len(colours) % len(COLOURS)])
            lanes[pod].append(Span(begun_s, at_s, layers, f'fill="{colour}"'))

    for change in document["changes"]:
        for move in change["moves"]:
            lanes.setdefault(move["pod"], [])
            end(move["pod"], change["at_s"])
            if move["after"]:
                current[move["pod"]] = (change["at_s"], ", ".join(move["after"]))
    for pod in list(current):
        end(pod, end_s)
    return lanes


def _violations(document: Mapping[str, Any], end_s: float) -> Mapping[str, list[Span]]:
    """Return a lane for each violation, over the time for which it stood."""
    lanes: dict[str, list[Span]] = {}
    for stood in document["violations"]:
        until_s = end_s if stood["until_s"] is None else stood["until_s"]
        span = Span(stood["from_s"], until_s, stood["message"], 'class="violation"')
        lanes.setdefault(f"{stood['invariant']} {stood['subject']}", []).append(span)
    return lanes


def _lane(place: int, name: str, spans: Sequence[Span], scale: float) -> Iterator[str]:
    top = TOP + LANE * place
    baseline = top + BAR - 3
    title = f"<title>{_text(name)}</title>"
    yield f'<text x="4" y="{baseline}">{title}{_text(_cut(name, LEFT))}</text>'
    for span in spans:
        x, width = LEFT + span.begins_s * scale, max((span.ends_s - span.begins_s) * scale, 2.0)
        title = _text(f"{span.name}, {span.begins_s:g} s to {span.ends_s:g} s")
        yield (
            f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{BAR}" {span.look}>'
            f"<title>{title}</title></rect>"
        )
        inside = _text(_cut(span.name, width))
        yield f'<text class="in" x="{x + 4:.1f}" y="{baseline}">{inside}</text>'


def _cut(name: str, width: float) -> str:
    """Return as much of *name* as fits in *width*."""
    most = int((width - 8) / LETTER)
    return name if len(name) <= most else f"{name[: most - 1]}\N{HORIZONTAL ELLIPSIS}" * (most > 1)


def _axis(end_s: float, scale: float, bottom: int) -> Iterator[str]:
    step = next((step for step in STEPS_S if end_s / step <= MOST_TICKS), end_s / MOST_TICKS)
    for number in range(int(end_s / step) + 1):
        x = LEFT + number * step * scale
        yield f'<path class="axis" d="M{x:.1f} {TOP - 6}V{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}">{number * step:g} s</text>'


def _changes(document: Mapping[str, Any], scale: float, bottom: int) -> Iterator[str]:
    """Yield a line where the engine would have to change, with the kind and the reasons."""
    for change in document["changes"]:
        if change["change"] != "none":
            x = LEFT + change["at_s"] * scale
            why = ": ".join(
                [change["change"], *(reason["message"] for reason in change["reasons"][:1])]
            )
            title = f"<title>{_text(why)}, at {change['at_s']:g} s</title>"
            yield f'<path class="change" d="M{x:.1f} {TOP - 6}V{bottom}">{title}</path>'
