"""``temper train``: the group of its commands."""

import click

from temper_plugin_trainer.commands.train_analyze import analyze_command
from temper_plugin_trainer.commands.train_auto import auto_command
from temper_plugin_trainer.commands.train_observe import observe_command
from temper_plugin_trainer.commands.train_relay import relay_command
from temper_plugin_trainer.commands.train_results import results_command
from temper_plugin_trainer.commands.train_run import run_command
from temper_plugin_trainer.commands.train_synthesize import synthesize_command

command = click.Group(
    "train",
    commands=[
        analyze_command,
        auto_command,
        observe_command,
        relay_command,
        results_command,
        run_command,
        synthesize_command,
    ],
    help="Measure the threads of a program, and write and refine a profile for them.",
)
