"""Records the threads of a workload, tests profiles on recordings, and trains profiles."""

from typing import TYPE_CHECKING

from temper_core import (
    Command,
    Instrument,
    InstrumentContext,
    OpenInstrument,
    SettingsTable,
    hookimpl,
)

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_instruments", "temper_settings"]

NAME = "trainer"
RESULTS_BYTES = 16 * 1024 * 1024
GROUP = "temper profiles"
CLUSTER = "kubectl temper"


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper train``, that of ``kubectl temper``, and two of ``temper profiles``."""
    return [
        Command("train", "Measure the threads of a program, for a profile.", _load_train),
        Command("train", "Refine a profile on a pod of a cluster.", _load_remote, under=CLUSTER),
        Command("record", "Record the threads of a live program.", _load_record, under=GROUP),
        Command("test", "Test a profile on recorded threads.", _load_test, under=GROUP),
    ]


@hookimpl
def temper_instruments() -> list[Instrument]:
    """Contribute the results of trainings, at ``/training``."""
    return [Instrument(NAME, _open, state_limit_bytes=RESULTS_BYTES)]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare that ``[plugins.trainer]`` has no keys."""
    return [SettingsTable()]


def _open(context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_trainer.results.instrument import TrainingResults  # noqa: PLC0415 - agent

    return TrainingResults(context)


def _load_record() -> "click.Command":
    from temper_plugin_trainer.commands.record import command  # noqa: PLC0415 - slow

    return command


def _load_train() -> "click.Command":
    from temper_plugin_trainer.commands.train import command  # noqa: PLC0415 - slow

    return command


def _load_remote() -> "click.Command":
    from temper_plugin_trainer.commands.train_remote import command  # noqa: PLC0415 - slow

    return command


def _load_test() -> "click.Command":
    from temper_plugin_trainer.commands.test import command  # noqa: PLC0415 - slow

    return command
