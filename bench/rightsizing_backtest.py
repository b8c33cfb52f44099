"""Throttling against budget: Temper's advice and that of three other rules on made-up containers.

    python -m bench.rightsizing_backtest [--days N] [--write docs/images]

All requests of a rule are multiplied by one factor. The plot has the throttled hours against the
requested core-hours for each factor, so rules can be compared at any budget.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.ladder.plots import Series, svg
from bench.ladder.spreads import Spread
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.backtest.replay import Sized, compare, outcomes, sized, total
from temper_plugin_rightsizer.backtest.rules import (
    HOUR_S,
    OURS,
    RULES,
    PercentileRule,
    Rule,
    ThreadRule,
)
from temper_plugin_rightsizer.backtest.samples import Name, Step, steps_of_samples
from temper_plugin_rightsizer.backtest.shapes import DAY_S, SHAPES
from temper_plugin_rightsizer.commands.backtest import as_text, losses

OURS_BY_CHOICE: Mapping[str, Callable[[], Rule]] = {
    "6 h": partial(ThreadRule, 6 * HOUR_S),
    "24 h": partial(ThreadRule, 24 * HOUR_S),
    "24 h, P98 x 1.1": partial(ThreadRule, 24 * HOUR_S, AdviceOptions(percentile=0.98, margin=1.1)),
}
OTHERS: Mapping[str, Callable[[], Rule]] = {
    **{name: make for name, make in RULES.items() if name != OURS},
    "percentile, P98": partial(PercentileRule, 0.98),
}
FACTORS = [0.7 + 0.05 * number for number in range(21)]
MOST_SHOWN_H = 100.0
"""Points with more throttled hours are left out, so that the others can be told apart."""
FILE = "rightsizing-backtest.svg"


def main() -> None:
    """Print the comparison of each window, and write the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--write", type=Path, help="the folder of the plot")
    arguments = parser.parse_args()
    containers = made(arguments.days)
    for choice, make in OURS_BY_CHOICE.items():
        comparison = compare(containers, {OURS: make, **OTHERS})
        print(f"\n## {choice}\n\n{as_text(comparison)}")
        print(json.dumps(losses(comparison)))
    if arguments.write:
        (arguments.write / FILE).write_text(plotted(containers, arguments.days))


def made(days: int) -> Mapping[Name, Sequence[Step]]:
    """Return the steps of all shapes."""
    return steps_of_samples(sample for shape in SHAPES for sample in shape.samples(days * DAY_S))


def plotted(containers: Mapping[Name, Sequence[Step]], days: int) -> str:
    """Return the plot as SVG."""
    rules = {f"{OURS}, {choice}": make for choice, make in OURS_BY_CHOICE.items()}
    series = [
        Series(name, _curve({each: sized(steps, make()) for each, steps in containers.items()}))
        for name, make in {**rules, **OTHERS}.items()
    ]
    title = f"{len(containers)} made-up containers, {days} days"
    return svg(title, "requested core-hours", "throttled hours", series, is_joined=True)


def _curve(judged: Mapping[Name, Sized]) -> list[tuple[float, Spread]]:
    points = []
    for factor in FACTORS:
        outcome = total(outcomes(judged, factor).values())
        throttled_h = outcome.throttled_s / HOUR_S
        if throttled_h <= MOST_SHOWN_H:
            points.append((outcome.core_s / HOUR_S, Spread((throttled_h,))))
    return points


if __name__ == "__main__":
    main()
