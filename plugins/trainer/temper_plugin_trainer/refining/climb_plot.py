"""Draws a climb as SVG: the gain of each trial over its incumbent, with its interval."""

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from temper_core.console import printable
from temper_plugin_trainer.refining.climb import Outcome, Trial, Verdict

ROW, TOP, LEFT, PLOT, MARGIN = 26, 50, 330, 520, 110
LEAST_SPAN = 0.01
DOT = 4.5
_STYLE = "text{font:12px sans-serif}.axis{stroke:#999}.bar{stroke:#555;stroke-width:2}"
_KEPT, _OTHER = "#009e73", "#ffffff"


def climb_plot(outcome: Outcome) -> str:
    """Return the trials of *outcome*, one per row, as an SVG document.

    The horizontal axis is the gain in per cent, to the right is better. A filled dot was kept. The
    last row is the confirmation against the tier alone.
    """
    trials = [*outcome.trials, *filter(None, [outcome.confirmation])]
    span = max([LEAST_SPAN, *map(_reach, trials)])
    width, height = LEFT + PLOT + MARGIN, TOP + ROW * (len(trials) + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="10" y="20">Gain of each trial over its incumbent, in %. Filled: kept.</text>',
        *_axis(span, height),
    ]
    for row, trial in enumerate(trials):
        is_last = trial is outcome.confirmation
        lines += _row(trial, TOP + ROW * row + ROW / 2, span, is_confirmation=is_last)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _reach(trial: Trial) -> float:
    """Return how far from 0 the row of *trial* reaches, unbounded ends left out."""
    ends = [trial.bounds.low, trial.bounds.high, math.log1p(trial.gain)]
    return max((abs(end) for end in ends if math.isfinite(end)), default=0.0)


def _x(log_ratio: float, span: float) -> float:
    inside = min(span, max(-span, log_ratio))
    return LEFT + PLOT * (inside / span + 1.0) / 2.0


def _axis(span: float, height: float) -> Iterator[str]:
    for part in (-1.0, -0.5, 0.0, 0.5, 1.0):
        x = _x(part * span, span)
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - ROW / 2}"/>'
        shown = f"{100 * math.expm1(part * span):+.1f}"
        yield f'<text x="{x:.1f}" y="{TOP - 6}" text-anchor="middle">{shown}</text>'


def _row(trial: Trial, y: float, span: float, *, is_confirmation: bool) -> Sequence[str]:
    title = "confirmation" if is_confirmation else f"{trial.number}. {trial.candidate.change}"
    label = f'<text x="10" y="{y + 4:.1f}">{escape(printable(title))}</text>'
    if not trial.gains:
        return [label]
    low, high = _x(trial.bounds.low, span), _x(trial.bounds.high, span)
    fill = _KEPT if trial.verdict is Verdict.KEPT else _OTHER
    return [
        label,
        f'<line class="bar" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>',
        _dot(_x(math.log1p(trial.gain), span), y, fill),
        f'<text x="{LEFT + PLOT + 8}" y="{y + 4:.1f}">{escape(str(trial.verdict))}</text>',
    ]


def _dot(x: float, y: float, fill: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT}" fill="{fill}" stroke="#333"/>'
