"""``kubectl temper power``: the views of a cluster."""

import click

from temper_plugin_power.commands.explain import explain_command
from temper_plugin_power.commands.profiles import profiles_command
from temper_plugin_power.commands.recommend import recommend_command
from temper_plugin_power.commands.status import status_command

command = click.Group(
    "power",
    commands=[explain_command, profiles_command, recommend_command, status_command],
    help="Show power profiles of workloads and the state of nodes.",
)
