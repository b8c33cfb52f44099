"""``temper train run``: refine a profile by a benchmark, and keep measured improvements alone."""

from pathlib import Path
from typing import Any

import click

from temper_core import MachineError, configure_logs, load_settings
from temper_core.console import held_interruptions, printable, settings_option
from temper_plugin_trainer.commands.artifacts import artifacts_directory
from temper_plugin_trainer.commands.profile_origin import origin_of
from temper_plugin_trainer.commands.run_options import run_options
from temper_plugin_trainer.commands.training_run import TrainingRun
from temper_plugin_trainer.refining.guardian import Guardian
from temper_plugin_trainer.refining.node_facts import facts_here
from temper_plugin_trainer.refining.trial_door import ENFORCING, OBSERVING, Door, Look, way_here
from temper_plugin_trainer.refining.window import parsed_window


@click.command("run")
@click.option("--pod", "pods", metavar="NAMESPACE/NAME", multiple=True, required=True)
@run_options
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
    door = Door(way_here(settings), pods)
    look = node_for_trials(door, may_observe=options["rehearse"])
    request = door.cpu_request_millis()
    origin = origin_of(profile, bundle, request)
    directory = artifacts_directory(
        options["artifacts"], options["workload"] or str(origin.table["id"])
    )
    guardian = Guardian(options["settings_path"])
    with held_interruptions():
        try:
            TrainingRun(
                door, look, facts_here(), origin, directory, guardian, request, options, show
            ).run()
        finally:
            guardian.close()


def show(verdict: str, report: Path, _profile: str) -> None:
    """Print the verdict of a run and the path of its report."""
    click.echo(printable(verdict))
    click.echo(str(report))


def node_for_trials(door: Door, *, may_observe: bool) -> Look:
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
