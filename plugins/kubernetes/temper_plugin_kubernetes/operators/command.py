"""``temper k8s``: a group whose commands are imported on use."""

from collections.abc import Mapping

import click

from temper_core import CommandGroup

COMMANDS: Mapping[str, str] = {
    "doctor": "Check the cluster, its nodes and Temper's installation.",
    "restore": "Make nodes undo Temper's changes.",
    "status": "Show the state of every node, worst first.",
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
    """Manage Temper in a Kubernetes cluster, also as kubectl temper.

    Exit codes: 0 clean, 1 findings, 2 wrong options or input, 3 no API server, or a right is
    missing.
    """
