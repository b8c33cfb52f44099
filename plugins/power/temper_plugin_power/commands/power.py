"""``temper power``: the group of its commands."""

import click

from temper_plugin_power.commands.classify import classify_command
from temper_plugin_power.commands.crds import crds_command
from temper_plugin_power.commands.dialect import dialect_command
from temper_plugin_power.commands.explain import explain_command
from temper_plugin_power.commands.extender import extender_command
from temper_plugin_power.commands.operator import operator_command
from temper_plugin_power.commands.profiles import profiles_command
from temper_plugin_power.commands.recommend import recommend_command
from temper_plugin_power.commands.score import score_command
from temper_plugin_power.commands.simulate import simulate_command
from temper_plugin_power.commands.status import status_command

command = click.Group(
    "power",
    commands=[
        classify_command,
        crds_command,
        dialect_command,
        explain_command,
        extender_command,
        operator_command,
        profiles_command,
        recommend_command,
        score_command,
        simulate_command,
        status_command,
    ],
    help="Classify workloads for power-aware placement.",
)
