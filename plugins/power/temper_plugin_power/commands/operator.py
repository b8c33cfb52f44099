"""``temper power operator``: the server that writes WorkloadProfiles and NodeTwins."""

from pathlib import Path

import click

from temper_serving.options import KUBECONFIG, LOG_LEVEL


@click.command("operator")
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Address of the probes and metrics. [default: listen of the settings, 0.0.0.0:9877]",
)
@click.option(
    "--namespace",
    metavar="NAME",
    help="The operator's own namespace, which holds its Lease and has no profiles. "
    "[default: that of the pod or of the kubeconfig]",
)
@click.option(
    "--settings",
    type=click.Path(path_type=Path),
    help="A settings file (TOML), for its [plugins.power].",
)
@LOG_LEVEL
@KUBECONFIG
def operator_command(
    listen: str | None,
    namespace: str | None,
    settings: Path | None,
    log_level: str,
    kubeconfig: Path | None,
) -> None:
    """Write WorkloadProfiles and NodeTwins, until SIGTERM or Ctrl-C.

    A workload gets a profile by its hints at once, and by the metrics of a Prometheus later. Of
    several replicas one writes, by a Lease in its namespace. The labels of nodes are only logged
    unless [plugins.power.operator] dry_run is false.
    """
    from temper_plugin_power.controller.starting import Start, start  # noqa: PLC0415 - slow, for --help

    start(Start(listen, namespace, kubeconfig, settings), log_level)
