"""``temper k8s``: a group whose commands are imported when they are called."""

from collections.abc import Mapping

import click

from temper_core import CommandGroup

COMMANDS: Mapping[str, str] = {
    "doctor": "Check the cluster, its nodes and Temper's installation.",
    "restore": "Have nodes undo what Temper left on them.",
    "status": "Show how every node fares, the worst first.",
}


@click.group(
    "k8s",
    cls=CommandGroup,
    path="kubectl temper",
    package="temper_plugin_kubernetes.operators",
    own=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Look after Temper in a Kubernetes cluster. Kubectl temper is the same.

    Exit codes: 0 clean, 1 findings, 2 an error in what was given, 3 there is no API server, or a
    right is missing.
    """
