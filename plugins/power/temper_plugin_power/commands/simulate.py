"""``temper power simulate``: a synthetic day of jobs, with and without power profiles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from temper_core import InputError
from temper_core.console import (
    EXIT_CLEAN,
    FiniteRange,
    Progress,
    SavedFile,
    columns,
    output_option,
    print_json,
    save_picture,
)
from temper_plugin_power.simulating.arms import QUEUE, STATIC, Arm, Fleet, Policy
from temper_plugin_power.simulating.comparing import Comparison, compare
from temper_plugin_power.simulating.intervals import Interval
from temper_plugin_power.simulating.jobs import KINDS, Day, mean_cores
from temper_plugin_power.simulating.physics import CORE_USE, SLOWED_BY, Machine
from temper_plugin_power.simulating.plot import plot

SCHEMA_VERSION = 1
MOST_LOAD = 0.9
MODEL = (
    "This is a simulation and no measurement, and no saving is claimed. Power is linear: a node "
    "idles at a fixed power, its cores share the rest, and a capped node cuts the power of all its "
    "jobs alike. A job loses in speed a fixed part of that cut, by its sensitivity. The jobs are "
    "made up. docs/power-simulation.md has the model."
)
HEADS = ("FIGURE", "UNCAPPED", "WITHOUT PROFILES", "WITH PROFILES", "WITH - WITHOUT")


@click.command("simulate")
@click.option("--seeds", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--first-seed", type=click.IntRange(0, 1_000_000), default=1, show_default=True)
@click.option("--nodes", type=click.IntRange(1, 200), default=12, show_default=True)
@click.option("--hours", type=FiniteRange(1, 72), default=24, show_default=True)
@click.option(
    "--jobs-per-hour",
    type=FiniteRange(1, 1000),
    default=120,
    show_default=True,
    help="The mean of the arrivals.",
)
@click.option(
    "--policy",
    type=click.Choice([STATIC, QUEUE]),
    default=STATIC,
    show_default=True,
    help="How many nodes are performance nodes.",
)
@click.option(
    "--performance-share",
    type=FiniteRange(0, 1),
    default=0.5,
    show_default=True,
    help="Of the nodes; the least share of the policy that follows demand.",
)
@click.option(
    "--eco-pct",
    type=FiniteRange(40, 100),
    default=60,
    show_default=True,
    help="The cap of an eco node, in percent of its maximum.",
)
@click.option(
    "--wrong",
    type=FiniteRange(0, 1),
    default=0.1,
    show_default=True,
    help="The share of the jobs whose profile is made up anew, right or wrong.",
)
@click.option(
    "--save",
    type=SavedFile(".svg", ".html"),
    help="Also draw the figures of the arms into this file, as .svg or .html.",
)
@output_option
def simulate_command(  # noqa: PLR0913 - one for each option
    *,
    seeds: int,
    first_seed: int,
    nodes: int,
    hours: float,
    jobs_per_hour: float,
    policy: str,
    performance_share: float,
    eco_pct: float,
    wrong: float,
    save: Path | None,
    output: str,
) -> int:
    """Simulate a day of jobs on capped nodes, with and without power profiles.

    The same jobs run in three arms: without caps, with caps but no profiles, and with both.
    Placement is that of the plugin's own filter, score, policy and guard. The figures are means
    over the seeds with intervals of 95 percent. One seed always gives the same. It is a simulation:
    no saving is claimed.
    """
    day = Day(hours, jobs_per_hour, wrong)
    fleet = Fleet(nodes, Machine(), Policy(policy, performance_share, eco_pct))
    needed, cores = mean_cores(day), nodes * fleet.machine.cores
    if needed > MOST_LOAD * cores:
        raise InputError(
            f"--jobs-per-hour {jobs_per_hour:g}: the jobs take {needed:.0f} cores on average, and "
            f"{nodes} nodes have {cores}; at most {MOST_LOAD:.0%} of them are simulated"
        )
    progress = Progress("Ctrl-C ends it")
    shown: list[tuple[int, Arm]] = []

    def tick(seed: int, arm: Arm) -> None:
        if shown[-1:] != [(seed, arm)]:
            shown.append((seed, arm))
            progress.show(f"seed {seed - first_seed + 1} of {seeds}, {arm}")

    compared = compare(day, fleet, range(first_seed, first_seed + seeds), tick)
    progress.end(f"simulated {len(shown)} days")
    if save is not None:
        title = f"A simulation and no measurement: {_basis(compared)}"
        save_picture(save, title, plot(compared, title))
    if output == "json":
        print_json(as_document(compared, day, fleet))
    else:
        click.echo(as_text(compared))
    return EXIT_CLEAN


def as_text(compared: Comparison) -> str:
    """Return a line for each figure, and what the simulation is."""
    rows = [
        (
            name,
            *(compared.arms[arm][name].text for arm in Arm),
            compared.difference[name].text,
        )
        for name in compared.difference
    ]
    return "\n".join([*columns(HEADS, rows), "", _basis(compared), MODEL])


def _basis(compared: Comparison) -> str:
    count = len(compared.seeds)
    return "1 seed, without intervals" if count == 1 else f"{count} seeds, intervals of 95 %"


def as_document(compared: Comparison, day: Day, fleet: Fleet) -> Mapping[str, Any]:
    """Return all figures, and the model with its numbers."""
    return {
        "schema_version": SCHEMA_VERSION,
        "is_simulation": True,
        "model": {
            "text": MODEL,
            "core_use_by_intensity": CORE_USE,
            "slowed_by_sensitivity": SLOWED_BY,
            "kinds_of_jobs": [asdict(kind) for kind in KINDS],
        },
        "day": asdict(day),
        "fleet": asdict(fleet),
        "seeds": list(compared.seeds),
        "arms": {arm.value: _figures(figures) for arm, figures in compared.arms.items()},
        "with_less_without": _figures(compared.difference),
    }


def _figures(figures: Mapping[str, Interval]) -> Mapping[str, Any]:
    return {name: {"mean": each.mean, "half_width_95": each.half} for name, each in figures.items()}
