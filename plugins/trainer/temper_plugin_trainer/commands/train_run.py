"""``temper train run``: refine a profile by a benchmark, and keep measured improvements alone."""

from pathlib import Path
from typing import Any

import click

from temper_core import (
    MachineError,
    configure_logs,
    load_settings,
)
from temper_core.console import (
    FiniteRange,
    held_interruptions,
    settings_option,
)
from temper_plugin_trainer.commands.artifacts import artifacts_directory
from temper_plugin_trainer.commands.profile_origin import origin_of
from temper_plugin_trainer.commands.training_run import TrainingRun
from temper_plugin_trainer.refining.benchmark import BETTER
from temper_plugin_trainer.refining.guardian import Guardian
from temper_plugin_trainer.refining.trial_door import ENFORCING, OBSERVING, Door, Look
from temper_plugin_trainer.refining.window import parsed_window

LONGEST_RUN_S = 600.0


@click.command("run")
@click.option("--pod", "pods", metavar="NAMESPACE/NAME", multiple=True, required=True)
@click.option("--benchmark", metavar="CMD", required=True, help="A command that measures once.")
@click.option("--metric", metavar="NAME", required=True, help="The metric that it prints.")
@click.option("--better", type=click.Choice(BETTER), help="If the benchmark does not print it.")
@click.option("--profile", type=click.Path(path_type=Path), help="The first candidate (TOML).")
@click.option("--bundle", type=click.Path(path_type=Path), help="Makes the first candidate.")
@click.option(
    "--artifacts",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("training-artifacts"),
    show_default=True,
    help="Directory of the records; this one is in a directory named after the workload.",
)
@click.option("--workload", metavar="NAME", help="By default the profile's id.")
@click.option("--trials", type=click.IntRange(1, 100), default=12, show_default=True)
@click.option(
    "--blocks",
    type=click.IntRange(8, 200),
    default=24,
    show_default=True,
    help="Pairs of measurements per trial, at most.",
)
@click.option(
    "--minutes", type=FiniteRange(min=0.1, max=100_000), help="Begin no block after this time."
)
@click.option(
    "--window",
    metavar="HH:MM-HH:MM",
    help="Begin measurements only at this time of the day, by the local time.",
)
@click.option(
    "--timeout",
    type=FiniteRange(min=0.1, max=LONGEST_RUN_S),
    default=120,
    show_default=True,
    help="Seconds of one run of the benchmark, at most.",
)
@click.option(
    "--warm-up",
    type=FiniteRange(min=0, max=300),
    default=2,
    show_default=True,
    help="Seconds between an arm in force and its first run.",
)
@click.option(
    "--in-force-within",
    type=FiniteRange(min=1, max=3_000),
    default=1_200,
    show_default=True,
    help="Seconds that an arm may take to get in force.",
)
@click.option(
    "--engines",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Engines that the run may use.",
)
@click.option(
    "--engine-runs",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="Runs per measurement if the arms need different engines.",
)
@click.option(
    "--stock-blocks",
    type=click.IntRange(0, 50),
    default=0,
    show_default=True,
    help="Pairs that compare the result with the stock scheduler. Each starts an engine.",
)
@click.option(
    "--more-waits",
    type=FiniteRange(min=0, max=10_000),
    default=0.5,
    show_default=True,
    help="CPUs that other pods may wait for in addition, before a trial ends.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--rehearse", is_flag=True, help="Also on an agent that only observes.")
@settings_option
def run_command(
    pods: tuple[str, ...],
    profile: Path | None,
    bundle: Path | None,
    **options: Any,  # noqa: ANN401 - options of click
) -> None:
    """Refine a profile by a benchmark, on the pods of a running agent.

    Compares the profile and variants of it with the tier alone, in blocks of random order, and
    keeps what is measured better. Each arm is a trial of the agent. CMD runs without a shell while
    the pods are under load, and prints one JSON line {"metric", "value", "unit", "better"} or
    numbers. The exit code is 1 if no improvement was found. Ctrl-C ends the trial. The same command
    continues after an interruption.
    """
    configure_logs("warning")
    settings = load_settings(options["settings_path"])
    options["window"] = parsed_window(options["window"]) if options["window"] is not None else None
    door = Door(settings, pods)
    look = _node(door, may_observe=options["rehearse"])
    request = door.cpu_request_millis()
    origin = origin_of(profile, bundle, request)
    directory = artifacts_directory(
        options["artifacts"], options["workload"] or str(origin.table["id"])
    )
    guardian = Guardian(options["settings_path"])
    with held_interruptions():
        try:
            TrainingRun(door, look, origin, directory, guardian, request, options).run()
        finally:
            guardian.close()


def _node(door: Door, *, may_observe: bool) -> Look:
    """Return the state of the node. Raise MachineError if trials have no effect there."""
    look = door.look()
    if look.mode == OBSERVING and not may_observe:
        raise MachineError(
            f"the agent only observes ({look.why}), so no profile has an effect; --rehearse "
            "measures all the same"
        )
    if look.mode not in (ENFORCING, OBSERVING):
        raise MachineError(f"the agent is in {look.mode} ({look.why}), so no trial is in force")
    return look
