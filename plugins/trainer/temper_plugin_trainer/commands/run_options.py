"""Options of the commands that refine a profile, on this node or through an API server."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from temper_core.console import FiniteRange
from temper_plugin_trainer.refining.benchmark import BETTER

LONGEST_RUN_S = 600.0
Decorated = Callable[..., Any]
_START = (
    click.option("--profile", type=click.Path(path_type=Path), help="The first candidate (TOML)."),
    click.option("--bundle", type=click.Path(path_type=Path), help="Makes the first candidate."),
)
_MEASURING = (
    click.option("--benchmark", metavar="CMD", required=True, help="A command that measures once."),
    click.option("--metric", metavar="NAME", required=True, help="The metric that it prints."),
    click.option("--better", type=click.Choice(BETTER), help="If the benchmark does not print it."),
    click.option(
        "--artifacts",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("training-artifacts"),
        show_default=True,
        help="Directory of the records; this one is in a directory named after the workload.",
    ),
    click.option("--workload", metavar="NAME", help="By default the profile's id."),
    click.option("--trials", type=click.IntRange(1, 100), default=12, show_default=True),
    click.option(
        "--blocks",
        type=click.IntRange(8, 200),
        default=24,
        show_default=True,
        help="Pairs of measurements per trial, at most.",
    ),
    click.option(
        "--minutes", type=FiniteRange(min=0.1, max=100_000), help="Begin no block after this time."
    ),
    click.option(
        "--window",
        metavar="HH:MM-HH:MM",
        help="Begin measurements only at this time of the day, by the local time.",
    ),
    click.option(
        "--timeout",
        type=FiniteRange(min=0.1, max=LONGEST_RUN_S),
        default=120,
        show_default=True,
        help="Seconds of one run of the benchmark, at most.",
    ),
    click.option(
        "--warm-up",
        type=FiniteRange(min=0, max=300),
        default=2,
        show_default=True,
        help="Seconds between an arm in force and its first run.",
    ),
    click.option(
        "--in-force-within",
        type=FiniteRange(min=1, max=3_000),
        default=1_200,
        show_default=True,
        help="Seconds that an arm may take to get in force.",
    ),
    click.option(
        "--engines",
        type=click.IntRange(min=0),
        default=20,
        show_default=True,
        help="Engines that the run may use.",
    ),
    click.option(
        "--engine-runs",
        type=click.IntRange(1, 50),
        default=3,
        show_default=True,
        help="Runs per measurement if the arms need different engines.",
    ),
    click.option(
        "--stock-blocks",
        type=click.IntRange(0, 50),
        default=0,
        show_default=True,
        help="Pairs that compare the result with the stock scheduler. Each starts an engine.",
    ),
    click.option(
        "--more-waits",
        type=FiniteRange(min=0, max=10_000),
        default=0.5,
        show_default=True,
        help="CPUs that other pods may wait for in addition, before a trial ends.",
    ),
    click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True),
    click.option("--no-trace", is_flag=True, help="Take no kernel trace of the arms at the end."),
    click.option("--rehearse", is_flag=True, help="Also on an agent that only observes."),
)


def run_options(command: Decorated) -> Decorated:
    """Add the first candidate, and what ``measuring_options`` adds, to a *command*."""
    return _with(_START, measuring_options(command))


def measuring_options(command: Decorated) -> Decorated:
    """Add what is measured, how, and within which bounds to a *command*."""
    return _with(_MEASURING, command)


def _with(options: Sequence[Callable[[Decorated], Decorated]], command: Decorated) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command
