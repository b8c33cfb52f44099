"""Draws the wake graph of an analysis as SVG."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from temper_core.console import printable
from temper_plugin_trainer.training.classes import ThreadClass
from temper_plugin_trainer.training.grouping import OUTSIDE_OF, Analysis, GroupEdge

MOST_NODES = 24
MOST_EDGES = 60
WIDTH, HEIGHT = 1_000, 760
BOX_WIDTH, BOX_HEIGHT = 168, 46
MARGIN = 110
LONGEST_LABEL = 24
LEAST_OF_WAKEE = 0.05
"""Share of a group's wake-ups below which an edge is not drawn. An interrupt in the run of a thread
may count as a wake-up by that thread."""
BOW = 0.12
"""Distance of a curve's control point from the line, as a share of its length."""

_COLOURS: Mapping[ThreadClass | None, str] = {
    ThreadClass.SYNC_COMPUTE: "#f4c7a1",
    ThreadClass.LATENCY_CRITICAL: "#a9cdf0",
    ThreadClass.WAKE_CHAIN: "#b5e0b0",
    ThreadClass.SPORADIC: "#e3e3e3",
    None: "#ffffff",
}
_STYLE = "text{font:12px sans-serif;text-anchor:middle}.edge{fill:none;stroke:#555}"
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
    'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>'
)


class _Node(NamedTuple):
    x: float
    y: float
    title: str
    subtitle: str
    colour: str


def wake_graph(analysis: Analysis) -> str:
    """Return the groups of *analysis* and the wake-ups between them as an SVG document.

    It has the most frequent edges, and the groups that they join. Edges that are few of the wakee's
    wake-ups are left out.
    """
    edges, places = _drawn(analysis.edges)
    nodes = _placed(analysis, places)
    total = sum(edge.per_s for edge in analysis.edges) or 1.0
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<style>{_STYLE}</style>",
        _TIP,
        *(_curve(nodes[edge.waker], nodes[edge.wakee], edge, total) for edge in edges),
        *(_box(node) for node in nodes.values()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _drawn(edges: Sequence[GroupEdge]) -> tuple[list[GroupEdge], list[int]]:
    """Return the most frequent edges between at most ``MOST_NODES`` nodes, and these nodes."""
    woken: defaultdict[int, float] = defaultdict(float)
    for edge in edges:
        woken[edge.wakee] += edge.per_s
    places: dict[int, None] = {}
    drawn: list[GroupEdge] = []
    for edge in sorted(edges, key=lambda edge: -edge.per_s):
        ends = dict.fromkeys((edge.waker, edge.wakee))
        if edge.per_s < LEAST_OF_WAKEE * woken[edge.wakee]:
            continue
        if len(drawn) < MOST_EDGES and len({*places, *ends}) <= MOST_NODES:
            places.update(ends)
            drawn.append(edge)
    return drawn, list(places)


def _placed(analysis: Analysis, places: Sequence[int]) -> Mapping[int, _Node]:
    """Place the nodes on an ellipse, in the order in which the edges name them."""
    nodes = {}
    for number, place in enumerate(places):
        angle = 2 * math.pi * number / len(places) - math.pi / 2
        x = WIDTH / 2 + (WIDTH / 2 - MARGIN) * math.cos(angle)
        y = HEIGHT / 2 + (HEIGHT / 2 - MARGIN) * math.sin(angle)
        if place < 0:
            nodes[place] = _Node(x, y, OUTSIDE_OF[place], "outside", _COLOURS[None])
            continue
        group = analysis.groups[place]
        subtitle = f"{group.kind}, {group.cpus:.2f} CPUs"
        nodes[place] = _Node(x, y, group.label, subtitle, _COLOURS[group.kind])
    return nodes


def _box(node: _Node) -> str:
    left, top = node.x - BOX_WIDTH / 2, node.y - BOX_HEIGHT / 2
    return (
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" '
        f'fill="{node.colour}" stroke="#555"/>'
        f'<text x="{node.x:.0f}" y="{node.y - 4:.0f}" font-weight="bold">{_text(node.title)}</text>'
        f'<text x="{node.x:.0f}" y="{node.y + 14:.0f}">{_text(node.subtitle, 40)}</text>'
    )


def _curve(start: _Node, end: _Node, edge: GroupEdge, total: float) -> str:
    label = f"{edge.per_s:.0f}/s"
    width = 1 + 4 * edge.per_s / total
    if start is end:
        x, y = start.x, start.y - BOX_HEIGHT / 2
        path = f"M{x - 20:.0f} {y:.0f}c-30 -45 70 -45 40 0"
        at_x, at_y = x, y - 36
    else:
        across, down = end.x - start.x, end.y - start.y
        bend_x = (start.x + end.x) / 2 - BOW * down
        bend_y = (start.y + end.y) / 2 + BOW * across
        from_x, from_y = _border(start, bend_x, bend_y)
        to_x, to_y = _border(end, bend_x, bend_y)
        path = f"M{from_x:.0f} {from_y:.0f}Q{bend_x:.0f} {bend_y:.0f} {to_x:.0f} {to_y:.0f}"
        at_x = (from_x + 2 * bend_x + to_x) / 4
        at_y = (from_y + 2 * bend_y + to_y) / 4
    return (
        f'<path class="edge" d="{path}" stroke-width="{width:.1f}" marker-end="url(#tip)"/>'
        f'<text x="{at_x:.0f}" y="{at_y:.0f}">{label}</text>'
    )


def _border(node: _Node, x: float, y: float) -> tuple[float, float]:
    """Return where the line from the node's centre to a point leaves its box."""
    across, down = x - node.x, y - node.y
    reach = max(abs(across) / (BOX_WIDTH / 2), abs(down) / (BOX_HEIGHT / 2), 1e-9)
    return node.x + across / max(1.0, reach), node.y + down / max(1.0, reach)


def _text(text: str, longest: int = LONGEST_LABEL) -> str:
    shown = printable(text)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")
