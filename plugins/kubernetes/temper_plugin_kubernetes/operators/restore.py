"""``temper k8s restore``: make nodes undo Temper's changes."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from temper_core import InputError, ReaderGone, configure_logs
from temper_core.console import print_json, printable
from temper_kube.api_server import ApiServer
from temper_plugin_kubernetes.operators.options import asked_of, cluster_options
from temper_plugin_kubernetes.operators.restoring import release_nodes, restore_nodes

if TYPE_CHECKING:
    from temper_plugin_kubernetes.operators.restoring import RestoreOutcome

FINDINGS = 1


@click.command("restore")
@cluster_options
@click.argument("nodes", nargs=-1)
@click.option("--all-nodes", is_flag=True, help="Every node of the cluster.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds to wait for answers.")
@click.option("--uninstall", is_flag=True, help="Before an uninstall: keep nothing.")
@click.option("--release", is_flag=True, help="Withdraw the request: the agents work again.")
def command(  # noqa: PLR0913 - one for each option
    kubeconfig: str,
    context: str,
    namespace: str,
    output: str,
    nodes: tuple[str, ...],
    *,
    all_nodes: bool,
    timeout: float,
    uninstall: bool,
    release: bool,
) -> int:
    """Make NODES, or with --all-nodes every node, undo Temper's changes.

    Each agent enters safe mode, removes its state from the host, and stays in safe mode until
    --release. With --uninstall the agents also stop writing to the cluster, and their annotations
    are removed.

    Exit codes: 0 restored (with --uninstall also if a node did not answer, so that an uninstall
    goes on), 1 a node may not be fully restored, 2 wrong options or names, 3 no API server, or a
    right is missing (nodes list, watch, patch; without pods list every node with an agent's
    annotations counts as having an agent).
    """
    if bool(nodes) == all_nodes:
        raise InputError("name the nodes to restore, or give --all-nodes")
    if uninstall and release:
        raise InputError("--uninstall and --release exclude each other")
    options = asked_of(kubeconfig, context, namespace, output)
    configure_logs("critical")  # what a lost watch means for a node is in its line

    def tell(outcome: "RestoreOutcome") -> None:
        if not options.is_json:
            with suppress(ReaderGone):  # the nodes are restored all the same
                click.echo(printable(outcome.text))

    with ApiServer(options.access) as api:
        outcomes = (
            release_nodes(api, nodes, tell)
            if release
            else restore_nodes(
                api,
                options.namespace,
                nodes,
                timeout_s=timeout,
                is_uninstall=uninstall,
                tell=tell,
            )
        )
    if options.is_json:
        _print_json(outcomes)
    has_findings = any(outcome.needs_a_look for outcome in outcomes)
    return FINDINGS if has_findings and not uninstall else 0


def _print_json(outcomes: "list[RestoreOutcome]") -> None:
    document = {
        "schema_version": 1,
        "nodes": [
            {"node": outcome.node, "state": outcome.state, "detail": outcome.detail}
            for outcome in outcomes
        ],
    }
    print_json(document)
