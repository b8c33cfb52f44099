"""``temper power crds``: the kinds that power-aware placement adds to a cluster."""

import click

from temper_core.console import print_json
from temper_plugin_power.resources.definitions import definitions


@click.command("crds")
def crds_command() -> None:
    """Print the CustomResourceDefinitions, for kubectl apply -f -.

    They are WorkloadProfile, NodeTwin and NodeHardware of joulie.io/v1alpha1. Nothing is applied.
    """
    print_json(definitions())
