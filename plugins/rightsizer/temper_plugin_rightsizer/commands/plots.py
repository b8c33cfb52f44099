"""Plots of what a container used against what it requests, as SVG."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from attrs import frozen

from temper_core.console import Row
from temper_core.observed import number, table
from temper_plugin_rightsizer.advice.use import QUANTILES

WIDTH, LANE, LEFT, TOP = 520, 26, 110, 6
PLOT_WIDTH = WIDTH - LEFT - 20
TICKS = 4
MIB = 1024 * 1024
MOST = 1e18


@frozen
class Lane:
    """The use of one object: P10, P50, P90, P99 and peak, or its peak alone."""

    name: str
    used: tuple[float, ...]


@frozen
class Mark:
    """An amount that is set or recommended. ``style`` is a class of the page."""

    name: str
    amount: float
    style: str


def cpu_plot(row: Row) -> str:
    """Return the plot of a container's CPUs, and of its busiest thread's."""
    used = table(row, "used")
    lanes = [
        Lane(name, found)
        for name, key in (("container", "cpu_quantiles"), ("busiest thread", "hottest_quantiles"))
        if (found := _quantiles(used.get(key)))
    ]
    if startup := _figure(used, "startup_cpu_peak"):
        lanes.append(Lane("start-up", (startup,)))
    return _plot("CPUs", lanes, _marks(row, "cpu_request_millis", "cpu_limit_millis", 1000))


def memory_plot(row: Row) -> str:
    """Return the plot of a container's memory, in MiB."""
    used = table(row, "used")
    lanes = [
        Lane(name, (size / MIB,))
        for name, key in (
            ("peak", "memory_peak_bytes"),
            ("start-up", "startup_memory_peak_bytes"),
        )
        if (size := _figure(used, key))
    ]
    return _plot("MiB", lanes, _marks(row, "memory_request_bytes", "memory_limit_bytes", MIB))


def _marks(row: Row, request: str, limit: str, unit: float) -> list[Mark]:
    now, wanted = table(row, "current"), table(row, "recommended")
    found = (
        ("request now", _figure(now, request), "now"),
        ("request advised", _figure(wanted, request), "advised"),
        ("limit now", _figure(now, limit), "limit now"),
        ("limit advised", _figure(wanted, limit), "limit advised"),
    )
    return [Mark(name, amount / unit, style) for name, amount, style in found if amount]


def _figure(row: Row, key: str) -> float:
    """Return an amount that a container can have, 0 without one."""
    amount = number(row, key) or 0.0
    return amount if 0 < amount < MOST else 0.0


def _quantiles(values: object) -> tuple[float, ...]:
    """Return the quantiles in a list, none if they are damaged."""
    if not isinstance(values, list) or len(values) != len(QUANTILES):
        return ()
    numbers = {str(place): value for place, value in enumerate(values)}
    return tuple(_figure(numbers, place) for place in numbers)


def _plot(unit: str, lanes: Sequence[Lane], marks: Sequence[Mark]) -> str:
    """Return a plot with one bar for each lane, and a line for each mark. Empty without a lane."""
    if not lanes:
        return ""
    largest = max(
        *(amount for lane in lanes for amount in lane.used), *(m.amount for m in marks), 0.01
    )
    scale = PLOT_WIDTH / (1.05 * largest)
    height = TOP + LANE * len(lanes) + 18
    told = "; ".join(
        [
            *(f"{lane.name} up to {lane.used[-1]:.2f}" for lane in lanes),
            *(f"{mark.name} {mark.amount:.2f}" for mark in marks),
        ]
    )
    parts = [
        f'<svg role="img" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
        f"<title>{escape(f'{unit}: {told}')}</title>",
        *_axis(unit, largest, scale, height),
        *(part for place, lane in enumerate(lanes) for part in _bar(lane, place, scale)),
        *(_line(mark, scale, height) for mark in marks),
        "</svg>",
    ]
    return "".join(parts)


def _axis(unit: str, largest: float, scale: float, height: int) -> Iterator[str]:
    step = _step(largest / TICKS)
    for tick in range(math.floor(largest / step) + 1):
        x = LEFT + tick * step * scale
        yield f'<path class="axis" d="M{x:.1f} {TOP}V{height - 16}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{height - 4}">{tick * step:g}</text>'
    yield f'<text class="unit" x="0" y="{height - 4}">{escape(unit)}</text>'


def _step(least: float) -> float:
    """Return the next of 1, 2, 5, 10 ... that is not below *least*."""
    power: float = 10 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def _bar(lane: Lane, place: int, scale: float) -> Iterator[str]:
    """Yield a bar up to the peak, with a darker one from P10 to P99 and a tick at P50."""
    middle = TOP + LANE * place + LANE / 2
    peak = lane.used[-1] * scale
    yield f'<text class="lane" x="0" y="{middle + 4:.0f}">{escape(lane.name)}</text>'
    yield f'<rect class="peak" x="{LEFT}" y="{middle - 3:.0f}" width="{peak:.1f}" height="6"/>'
    if len(lane.used) > 1:
        low, half, _, high, _ = (value * scale for value in lane.used)
        width = max(high - low, 1.0)
        x = LEFT + low
        yield (
            f'<rect class="usual" x="{x:.1f}" y="{middle - 7:.0f}" width="{width:.1f}" '
            'height="14"/>'
        )
        yield f'<path class="half" d="M{LEFT + half:.1f} {middle - 7:.0f}v14"/>'


def _line(mark: Mark, scale: float, height: int) -> str:
    x = LEFT + mark.amount * scale
    title = escape(f"{mark.name}: {mark.amount:g}")
    return (
        f'<path class="mark {mark.style}" d="M{x:.1f} {TOP - 4}V{height - 16}">'
        f"<title>{title}</title></path>"
    )
