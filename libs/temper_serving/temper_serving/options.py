"""Options that the commands of several servers have."""

from pathlib import Path

import click

KUBECONFIG = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="A kubeconfig. Default: $KUBECONFIG, the pod's own account, or ~/.kube/config.",
)
LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
