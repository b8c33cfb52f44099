"""``temper dashboard``: the page of a cluster."""

from pathlib import Path

import click

from temper_prometheus.options import access_options
from temper_serving.options import KUBECONFIG, LOG_LEVEL

PROMETHEUS = access_options("A Prometheus that scrapes the agents, for the history of nodes.")
PROMETHEUS_TOKEN_FILE = click.option(
    "--prometheus-token-file",
    type=click.Path(path_type=Path),
    help="A file with the bearer token for it.",
)


@click.group("dashboard")
def dashboard() -> None:
    """Show all nodes of a cluster on one page."""


@dashboard.command("serve")
@click.option("--listen", default="127.0.0.1:8090", show_default=True, help="Address for HTTP.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    required=True,
    help="A file with the token of the login: at least 16 printable characters.",
)
@click.option(
    "--namespace", default="temper", show_default=True, help="The namespace of the agents."
)
@click.option(
    "--reach",
    type=click.Choice(["proxy", "pod"]),
    default="proxy",
    show_default=True,
    help="How agents are asked: by the API server's proxy, or at the address of their pods.",
)
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(1, 300),
    default=5,
    show_default=True,
    help="Seconds between two rounds over all agents while a page is open.",
)
@click.option(
    "--pod-details",
    "pod_parts",
    type=click.Choice(["events", "manifest", "revisions", "logs"]),
    multiple=True,
    help="What is shown of pods from the API server. May be repeated. Whoever enters reads it.",
)
@click.option(
    "--actions",
    "has_actions",
    is_flag=True,
    help="Pass safe mode, traces and reloads on to agents, with a token of theirs. Not by proxy.",
)
@click.option(
    "--certificate", type=click.Path(path_type=Path), help="Serve TLS by this chain (PEM)."
)
@click.option("--key", type=click.Path(path_type=Path), help="The key of --certificate (PEM).")
@PROMETHEUS["url"]
@PROMETHEUS_TOKEN_FILE
@PROMETHEUS["ca_file"]
@PROMETHEUS["tenant"]
@LOG_LEVEL
@KUBECONFIG
def serve(**options: object) -> None:
    """Serve the page of the cluster until SIGTERM or Ctrl-C.

    It reads the list of agents from the API server, and asks them while a page is open. Without
    --actions it writes nothing. The login needs the token.
    """
    from temper_plugin_dashboard.fleet.starting import Start, start  # noqa: PLC0415 - slow

    start(Start(**options))  # type: ignore[arg-type]  # the options above
