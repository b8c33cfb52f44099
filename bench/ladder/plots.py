"""Draws rows of the ladder as SVG: a figure against the level, and latency against idle CPU."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from attrs import frozen

from bench.ladder.measures import MEASURES
from bench.ladder.rows import Row
from bench.ladder.spreads import Spread

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 50, 50
INSET = 15
"""Room between the axis and a dot at 0."""
COLOURS = ("#555555", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
"""Okabe and Ito's colours, which stay apart for colour-blind readers."""
MOST_TICKS = 8
STEPS = (1.0, 2.0, 5.0, 10.0)
RADIUS = 4
CAP = 4
APART = 5
"""Pixels between the dots of two arms at the same place."""

Point = tuple[float, Spread]


@frozen
class Series:
    """One arm's points in a plot: x, and the values at it."""

    name: str
    points: Sequence[Point]


def plots(rows: Sequence[Row]) -> Mapping[str, str]:
    """Return the SVG files of all loads by name."""
    drawn = {}
    for load in dict.fromkeys(row.load for row in rows):
        of_load = [row for row in rows if row.load == load]
        drawn[f"ladder-{load}-p99.svg"] = _by_level(load, of_load)
        drawn[f"ladder-{load}-idle.svg"] = _by_idle(load, of_load)
    return drawn


def _by_level(load: str, rows: Sequence[Row]) -> str:
    series = [
        Series(arm, [(row.level, spread) for row in own if (spread := row.spread("p99"))])
        for arm, own in _by_arm(rows).items()
    ]
    return svg(f"{load}: p99 by level", "level", MEASURES["p99"].title, series, is_joined=True)


def _by_idle(load: str, rows: Sequence[Row]) -> str:
    highest = max(row.level for row in rows)
    series = [
        Series(arm, [(idle.median, spread)])
        for arm, own in _by_arm(rows).items()
        for row in own
        if row.level == highest and (idle := row.spread("idle")) and (spread := row.spread("p99"))
    ]
    title = f"{load}, level {highest}: p99 against idle CPU"
    return svg(title, MEASURES["idle"].title, MEASURES["p99"].title, series, is_joined=False)


def _by_arm(rows: Sequence[Row]) -> dict[str, list[Row]]:
    arms: dict[str, list[Row]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    return arms


def svg(
    title: str, x_title: str, y_title: str, series: Sequence[Series], *, is_joined: bool
) -> str:
    """Return a plot. Medians are dots, and a bar goes from the smallest run to the largest."""
    most_x = max((x for each in series for x, _ in each.points), default=0)
    most_y = max((y.most for each in series for _, y in each.points), default=0)
    scale = _Scale(ticks(most_x), ticks(most_y))
    parts = [*_axes(scale, x_title, y_title), _text(LEFT, TOP - 28, title, "start")]
    for number, each in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        shift = APART * (number - (len(series) - 1) / 2) if is_joined else 0
        parts += _drawn(scale, each, colour, shift, is_joined=is_joined)
        parts += _legend(number, each.name, colour)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n<title>{escape(title)}</title>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def ticks(most: float) -> list[float]:
    """Return at most nine round numbers from 0, the last of which is *most* or more."""
    if most <= 0:
        return [0.0, 1.0]
    unit = 10.0 ** floor(log10(most / MOST_TICKS))
    step = next(each * unit for each in STEPS if each * unit * MOST_TICKS >= most)
    return [round(number * step, 9) for number in range(ceil(most / step) + 1)]


@frozen
class _Scale:
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]

    def x(self, value: float) -> float:
        return LEFT + INSET + value / self.x_ticks[-1] * (WIDTH - LEFT - RIGHT - 2 * INSET)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / self.y_ticks[-1] * (HEIGHT - TOP - BOTTOM)


def _axes(scale: _Scale, x_title: str, y_title: str) -> list[str]:
    left, right, low, top = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, TOP
    parts = [_line(left, low, right, low, "#000"), _line(left, low, left, top, "#000")]
    for x in scale.x_ticks:
        parts.append(_line(scale.x(x), low, scale.x(x), low + CAP, "#000"))
        parts.append(_text(scale.x(x), low + 18, f"{x:g}", "middle"))
    for y in scale.y_ticks:
        parts.append(_line(left, scale.y(y), right, scale.y(y), "#ddd"))
        parts.append(_text(left - 6, scale.y(y) + 4, f"{y:g}", "end"))
    parts.append(_text((left + right) / 2, HEIGHT - 10, x_title, "middle"))
    parts.append(_text(LEFT, TOP - 10, y_title, "start"))
    return parts


def _drawn(
    scale: _Scale, series: Series, colour: str, shift: float, *, is_joined: bool
) -> list[str]:
    places = [(scale.x(x) + shift, scale.y(y.median)) for x, y in series.points]
    parts = []
    if is_joined and len(places) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
    for (x, y), (_, spread) in zip(places, series.points, strict=True):
        low, high = scale.y(spread.least), scale.y(spread.most)
        parts.append(_line(x, low, x, high, colour))
        parts += [_line(x - CAP, end, x + CAP, end, colour) for end in (low, high)]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{colour}"/>')
    return parts


def _legend(number: int, name: str, colour: str) -> list[str]:
    x, y = WIDTH - RIGHT + 12, TOP + 20 * number
    return [
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{colour}"/>',
        _text(x + 10, y + 4, name, "start"),
    ]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
