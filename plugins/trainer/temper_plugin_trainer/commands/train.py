"""``temper train``: the group of its commands."""

import click

from temper_plugin_trainer.commands.train_observe import observe_command

command = click.Group(
    "train",
    commands=[observe_command],
    help="Measure the threads of a program, under its load.",
)
