"""A comparison of simulated days as a picture: the bars of each arm, figure by figure.

The picture is SVG, and loads nothing from elsewhere.
"""

from collections.abc import Iterator

from temper_core.console import svg_picture
from temper_plugin_power.simulating.arms import Arm
from temper_plugin_power.simulating.comparing import Comparison
from temper_plugin_power.simulating.intervals import Interval

WIDTH, LEFT, RIGHT, TOP = 900, 180, 220, 34
BAR, GAP, HEAD = 16, 14, 18
COLOURS = ("#7a7a7a", "#c2527a", "#2f7ed8")
LIGHT = ".interval { stroke: #222; stroke-width: 1.5 }"
DARK = ".interval { stroke: #e6e6e6 }"


def plot(compared: Comparison, title: str) -> str:
    """Return the SVG of *compared*. Each figure has a scale of its own, from 0.

    The lines across the ends of the bars are the intervals of 95 %.
    """
    names = list(compared.difference)
    height = TOP + len(names) * (HEAD + len(Arm) * BAR + GAP)
    parts: list[str] = []
    for number, name in enumerate(names):
        top = TOP + number * (HEAD + len(Arm) * BAR + GAP)
        parts += _figure(name, {arm: compared.arms[arm][name] for arm in Arm}, top)
    return svg_picture(title, (WIDTH, height), parts, light=LIGHT, dark=DARK)


def _figure(name: str, arms: dict[Arm, Interval], top: int) -> Iterator[str]:
    yield f'<text class="head" x="4" y="{top + 12}">{name}</text>'
    most = max(abs(each.mean) + (each.half or 0.0) for each in arms.values()) or 1.0
    scale = (WIDTH - LEFT - RIGHT) / most
    for number, (arm, each) in enumerate(arms.items()):
        y = top + HEAD + number * BAR
        yield f'<text x="4" y="{y + 11}">{arm}</text>'
        yield (
            f'<rect x="{LEFT}" y="{y}" width="{max(0.0, each.mean) * scale:.1f}" '
            f'height="{BAR - 3}" fill="{COLOURS[number]}"/>'
        )
        if each.half:
            begin, end = (LEFT + (each.mean + sign * each.half) * scale for sign in (-1, 1))
            middle = y + (BAR - 3) / 2
            yield (
                f'<line class="interval" x1="{max(LEFT, begin):.1f}" x2="{end:.1f}" '
                f'y1="{middle}" y2="{middle}"/>'
            )
        yield f'<text x="{WIDTH - RIGHT + 8}" y="{y + 11}">{each.text}</text>'
