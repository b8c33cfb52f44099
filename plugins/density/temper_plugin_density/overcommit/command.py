"""``temper overcommit``: the admission webhook, a preview of what it does, and a report."""

from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from temper_core.console import bounded_memory
from temper_plugin_density.choices import EXIT_FINDINGS, OUTPUT, SETTINGS
from temper_plugin_density.overcommit import names
from temper_plugin_density.overcommit.options import read_duration, read_factor, read_pause
from temper_serving.options import KUBECONFIG, LOG_LEVEL
from temper_serving.validity import now

FACTOR = click.option(
    "--factor",
    callback=read_factor,
    default="0.7",
    show_default=True,
    help="The share of a request that is left.",
)


@click.group("overcommit")
def overcommit() -> None:
    """Lower the CPU requests of new pods in namespaces that ask for it."""


NAMESPACE = click.option(
    "--namespace", default=names.NAMESPACE, show_default=True, help="Its own namespace."
)
SERVICE = click.option("--service", default=names.SERVICE, show_default=True, help="Its Service.")
SECRET = click.option(
    "--secret", default=names.SECRET, show_default=True, help="The Secret with the authority."
)
CONFIGURATION = click.option(
    "--configuration",
    default=names.CONFIGURATION,
    show_default=True,
    help="Its MutatingWebhookConfiguration.",
)


@overcommit.command("serve")
@click.option("--listen", default="0.0.0.0:8443", show_default=True, help="Address for TLS.")
@click.option("--observe", default="0.0.0.0:8081", show_default=True, help="Health and metrics.")
@NAMESPACE
@SERVICE
@SECRET
@CONFIGURATION
@click.option("--name", "also", multiple=True, help="One more name or address of the certificate.")
@FACTOR
@click.option(
    "--certificate-life",
    callback=read_duration,
    default="90d",
    show_default=True,
    help="How long a certificate is valid.",
)
@click.option(
    "--overlap",
    callback=read_duration,
    default="5m",
    show_default=True,
    help="How old a new authority is before it replaces one that is still trusted.",
)
@click.option(
    "--check-every",
    callback=read_duration,
    default="30s",
    show_default=True,
    help="How often the Secret and the configuration are checked.",
)
@click.option(
    "--drain",
    callback=read_pause,
    default="5s",
    show_default=True,
    help="How long requests are still answered after SIGTERM.",
)
@LOG_LEVEL
@KUBECONFIG
@SETTINGS
def serve(**given: Any) -> None:  # noqa: ANN401 - click's options, each of its type
    """Answer the API server until SIGTERM.

    Every answer admits the pod, lowered or not. The Secret holds the authority that the API server
    trusts, which the chart or `temper overcommit authority` makes. Each replica signs a certificate
    with it and renews that after two thirds of its life. Nothing is written to the cluster.
    """
    from temper_plugin_density.overcommit.starting import ServeOptions, start  # noqa: PLC0415 - slow

    start(ServeOptions(**given))


@overcommit.command("authority")
@NAMESPACE
@SERVICE
@SECRET
@CONFIGURATION
@click.option(
    "--life",
    callback=read_duration,
    default="3650d",
    show_default=True,
    help="How long the authority is valid.",
)
@click.option(
    "--trust-too",
    "replaced",
    type=click.Path(path_type=Path),
    help="PEM file with the authority that is replaced.",
)
def authority(life: timedelta, replaced: Path | None, **named: str) -> None:
    """Print the webhook's Secret and configuration with a new authority, as YAML.

    For clusters without the chart: pipe it to `kubectl apply -f -`. The Secret holds the
    authority's key. To replace an authority without a gap, give the `ca.crt` in force with
    --trust-too. Exit code 2 if that file cannot be read.
    """
    from temper_plugin_density.overcommit import installing  # noqa: PLC0415 - slow

    of = installing.WebhookNames(**named)
    click.echo(installing.manifests(of, life, now(), replaced), nl=False)


@overcommit.command("preview")
@click.option(
    "-f",
    "--file",
    "source",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    help="Pods or workloads with pod templates, as YAML or JSON. - reads standard input.",
)
@FACTOR
@OUTPUT
@SETTINGS
def preview(source: Path, factor: Fraction, output: str, settings: Path | None) -> None:
    """Show what the webhook would do with pods, container by container, and why.

    No cluster is contacted: every namespace counts as labelled. Exit code 2 if the file cannot be
    read.
    """
    from temper_plugin_density.overcommit.previewing import show  # noqa: PLC0415 - slow

    with bounded_memory("the pods take"):
        text = show(source, factor, settings, output)
    click.echo(text)


@overcommit.command("report")
@OUTPUT
@KUBECONFIG
@click.pass_context
def report(context: click.Context, output: str, kubeconfig: Path | None) -> None:
    """Show per namespace how many pods run lowered, and how much that frees.

    Exit code 1 if a LimitRange of a labelled namespace may refuse lowered pods, 3 if the cluster
    does not answer.
    """
    from temper_plugin_density.overcommit.reporting import report_on  # noqa: PLC0415 - slow

    text, has_findings = report_on(kubeconfig, output)
    click.echo(text)
    context.exit(EXIT_FINDINGS if has_findings else 0)
