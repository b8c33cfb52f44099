"""``temper power extender``: the scheduler extender as a server."""

from pathlib import Path
from typing import Any

import click

from temper_serving.options import KUBECONFIG, LOG_LEVEL

SCALES = ("10", "100")


@click.command("extender")
@click.option(
    "--listen",
    help="Address for HTTP. Default: [plugins.power.extender] listen, 0.0.0.0:9876.",
)
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    help="A PEM file with the server's certificate chain, for TLS. A changed file is taken up.",
)
@click.option("--key", type=click.Path(path_type=Path), help="A PEM file with its private key.")
@click.option(
    "--score-scale",
    type=click.Choice(SCALES),
    help="The highest score. Default: [plugins.power.extender] score_scale, 100.",
)
@LOG_LEVEL
@KUBECONFIG
@click.option(
    "--settings",
    type=click.Path(path_type=Path),
    help="The agents' settings file (TOML), for its [plugins.power].",
)
def extender_command(**options: Any) -> None:  # noqa: ANN401 - the fields of ServeOptions
    """Answer kube-scheduler as its extender, until SIGTERM or Ctrl-C.

    It watches nodes, NodeTwins, NodeHardwares, WorkloadProfiles and the owners of pods, and writes
    nothing. Without an API server it uses the last known state. Nodes whose NodeTwin is old get a
    neutral score. Exit code 2 if an option or a setting is invalid, 3 if it cannot listen.
    """
    from temper_plugin_power.extender.starting import (  # noqa: PLC0415 - slow, for --help
        ServeOptions,
        start,
    )

    start(ServeOptions(**options))
