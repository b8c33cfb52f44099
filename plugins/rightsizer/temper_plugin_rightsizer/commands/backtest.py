"""``temper rightsize backtest``: what recorded demand would have met under each rule's advice."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from temper_core import InputError
from temper_core.console import bounded_memory, columns, output_option, print_json, printable
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.backtest.replay import (
    LEARNING_S,
    Comparison,
    Outcome,
    compare,
    total,
)
from temper_plugin_rightsizer.backtest.rules import HOUR_S, OURS, RULES, ThreadRule
from temper_plugin_rightsizer.backtest.samples import (
    Name,
    Place,
    Step,
    add_samples,
    steps_of_demands,
)
from temper_plugin_rightsizer.backtest.shapes import DAY_S, SHAPES
from temper_plugin_rightsizer.backtest.sources import demands_of_history, samples_of_file
from temper_plugin_rightsizer.commands.choices import advice_options, chosen
from temper_plugin_rightsizer.commands.fleet import FleetQuestion, asked_fleet, fleet_options
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.options import HOURS_OF_DAY, MOST_DAYS

SCHEMA_VERSION = 1
HEADS = (
    *("rule", "CPU factor", "core-h", "wasted", "throttled h", "late core-h"),
    *("memory factor", "GiB-h", "wasted", "OOM h"),
)
MOST_LOSSES = 20
USUAL_DAYS = 2


@click.command("backtest")
@click.argument("samples", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    help="A node's history: instruments/rightsizer/demand.sqlite in the agent's state directory.",
)
@click.option(
    "--shapes",
    "days",
    type=click.IntRange(1, MOST_DAYS),
    help="Replay made-up containers of known shapes over so many days.",
)
@click.option(
    "--days",
    "fleet_days",
    type=click.IntRange(1, MOST_DAYS),
    default=USUAL_DAYS,
    show_default=True,
    help="Replay so many days of a Prometheus.",
)
@click.option(
    "--hours",
    type=click.IntRange(1, MOST_DAYS * HOURS_OF_DAY),
    default=6,
    show_default=True,
    help="The hours of history that Temper's advice follows from.",
)
@advice_options
@fleet_options
@output_option
def command(  # noqa: PLR0913 - one for each option
    *,
    samples: tuple[Path, ...],
    history: Path | None,
    days: int | None,
    hours: int,
    fleet: FleetQuestion,
    fleet_days: int,
    output: str,
    **choices: float | None,
) -> None:
    """Replay recorded demand under the advice of Temper and of three other rules.

    SAMPLES are files of samples: CSV with a head, or JSON in lines. With --prometheus the demand
    of a fleet is replayed. Each hour every rule advises
    from what it has seen, and the next hour is judged by the advice.
    """
    with bounded_memory("the demand takes"):
        demands = _of_fleet(fleet, fleet_days) if fleet.url else {}
        containers = read(samples, history, days, demands)
        ours = partial(ThreadRule, hours * HOUR_S, AdviceOptions(**chosen(choices)))
        comparison = compare(containers, {**RULES, OURS: ours})
    if output == "json":
        print_json(as_document(comparison))
    else:
        click.echo(as_text(comparison))


def _of_fleet(question: FleetQuestion, days: int) -> dict[Place, IntervalDemand]:
    from temper_plugin_rightsizer.backtest.fleet_demands import (  # noqa: PLC0415 - slow
        demands_of_fleet,
    )

    with asked_fleet(question, days * HOURS_OF_DAY) as fleet:
        return demands_of_fleet(fleet)


def read(
    samples: Sequence[Path],
    history: Path | None,
    days: int | None,
    demands: dict[Place, IntervalDemand] | None = None,
) -> Mapping[Name, Sequence[Step]]:
    """Return the steps of all sources, *demands* included. Raises InputError if there is none."""
    demands = {**(demands or {}), **(demands_of_history(history) if history else {})}
    for path in samples:
        add_samples(demands, samples_of_file(path))
    for shape in SHAPES if days else ():
        add_samples(demands, shape.samples((days or 0) * DAY_S))
    recorded = steps_of_demands(demands)
    containers = {name: steps for name, steps in recorded.items() if _span_s(steps) >= LEARNING_S}
    if not containers:
        raise InputError(_why_none(recorded, (*samples, *([history] if history else []))))
    return containers


def _span_s(steps: Sequence[Step]) -> int:
    return steps[-1].at - steps[0].at


def _why_none(recorded: Mapping[Name, Sequence[Step]], files: Sequence[Path]) -> str:
    """Return why nothing can be replayed: no demand was found, or too little."""
    named = f"{', '.join(map(str, files))}: " if files else ""
    if not recorded:
        found = "no demand was found" if files else "there is no demand"
        return f"{named}{found}; give files of samples, --history, --prometheus or --shapes"
    longest = max(map(_span_s, recorded.values())) // HOUR_S + 1
    return (
        f"{named}no container has more than {LEARNING_S // HOUR_S} hours of demand, from which "
        f"the rules learn; the longest spans up to {longest} h"
    )


def as_document(comparison: Comparison) -> Mapping[str, Any]:
    """Return the totals of each rule, and the outcome for each container at equal budget."""
    return {
        "schema_version": SCHEMA_VERSION,
        "alone": {rule: asdict(total(own.values())) for rule, own in comparison.alone.items()},
        "equal_budget": {
            rule: {
                "cpu_factor": comparison.scales[rule][0],
                "memory_factor": comparison.scales[rule][1],
                "total": asdict(total(own.values())),
                "containers": {name: asdict(part) for name, part in own.items()},
            }
            for rule, own in comparison.equal.items()
        },
        "losses": losses(comparison),
    }


def losses(comparison: Comparison) -> Mapping[Name, Sequence[str]]:
    """Return the rules that did better than ours for a container, at equal budget.

    Better is fewer throttled seconds, or fewer steps without enough memory.
    """
    ours = comparison.equal[OURS]
    better = {
        name: [
            rule
            for rule, own in comparison.equal.items()
            if own[name].throttled_s < part.throttled_s or own[name].oom < part.oom
        ]
        for name, part in ours.items()
    }
    return {name: rules for name, rules in better.items() if rules}


def as_text(comparison: Comparison) -> str:
    """Return the totals of each rule in columns, and where ours loses."""
    alone = [
        _cells(rule, total(own.values()), (1.0, 1.0)) for rule, own in comparison.alone.items()
    ]
    equal = [
        _cells(rule, total(own.values()), comparison.scales[rule])
        for rule, own in comparison.equal.items()
    ]
    lines = ["as advised", *columns(HEADS, alone), "", "at equal budget", *columns(HEADS, equal)]
    lost = losses(comparison)
    lines += ["", f"another rule did better for {len(lost)} of {len(comparison.equal[OURS])}:"]
    lines += [f"  {printable(name)}: {', '.join(lost[name])}" for name in list(lost)[:MOST_LOSSES]]
    return "\n".join(lines)


def _cells(rule: str, outcome: Outcome, scales: tuple[float, float]) -> tuple[str, ...]:
    """Return one row. Times are in hours."""
    cpu, memory = scales
    figures = (
        outcome.throttled_s,
        outcome.late_core_s,
        outcome.core_s,
        outcome.wasted_core_s,
        outcome.gib_s,
        outcome.wasted_gib_s,
    )
    throttled, late, cores, wasted, gib, wasted_gib = (f"{each / HOUR_S:.1f}" for each in figures)
    return (
        *(rule, f"{cpu:.2f}", cores, wasted, throttled, late),
        *(f"{memory:.2f}", gib, wasted_gib, str(outcome.oom)),
    )
