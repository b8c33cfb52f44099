"""``temper placement``: the scheduler extender, and a command that shows its scores."""

from pathlib import Path

import click

from temper_plugin_density.choices import EXIT_FINDINGS, OUTPUT, SETTINGS
from temper_serving.options import KUBECONFIG, LOG_LEVEL


@click.group("placement")
def placement() -> None:
    """Score nodes for the cluster's scheduler."""


@placement.command("serve")
@click.option("--listen", default="0.0.0.0:8888", show_default=True, help="Address for HTTP.")
@LOG_LEVEL
@KUBECONFIG
@SETTINGS
def serve(listen: str, log_level: str, kubeconfig: Path | None, settings: Path | None) -> None:
    """Answer kube-scheduler as its extender, until SIGTERM or Ctrl-C.

    It lists and watches nodes and pods, and writes nothing. Without an API server it uses the last
    known state. Nodes whose annotations are older than ten minutes get a neutral score.
    """
    from temper_plugin_density.placement.starting import start  # noqa: PLC0415 - slow, for --help

    start(listen, log_level, kubeconfig, settings)


@placement.command("score")
@click.argument("pod", metavar="POD")
@OUTPUT
@KUBECONFIG
@SETTINGS
@click.pass_context
def score(
    context: click.Context, pod: str, output: str, kubeconfig: Path | None, settings: Path | None
) -> None:
    """Show how every node would be scored for POD, and why.

    POD is a file that ends in .yaml, .yml or .json (- reads standard input), or [namespace/]name
    of a pod in the cluster. Exit code 1 if every node's score is 0, 2 if there is no such pod, 3
    if the API server does not answer.
    """
    from temper_plugin_density.placement.starting import show  # noqa: PLC0415 - slow, for --help

    text, has_candidate = show(pod, output, kubeconfig, settings)
    click.echo(text)
    context.exit(0 if has_candidate else EXIT_FINDINGS)
