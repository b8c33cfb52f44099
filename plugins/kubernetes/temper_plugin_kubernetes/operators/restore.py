"""``temper k8s restore``: have nodes undo what Temper left on them."""

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from temper_core import InputError
from temper_core.console import printable
from temper_core.standard_output import ReaderGone
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
@click.option("--uninstall", is_flag=True, help="The agents are about to go: keep nothing.")
@click.option("--release", is_flag=True, help="Take the request back: the agents work again.")
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
    """Have NODES, or with --all-nodes every node, undo what Temper left on them.

    Each agent goes to safe mode, removes what it keeps on its host, and stays so until --release.
    With --uninstall it tells the cluster nothing more either, and the annotations are removed.

    Exit codes: 0 restored (with --uninstall also where a node did not answer: an uninstall is
    not held up by it), 1 something may be left somewhere, 2 wrong options or names, 3 no API
    server, or a right is missing (nodes list, watch, patch; without pods list an agent is taken
    to run where it has written annotations).
    """
    if bool(nodes) == all_nodes:
        raise InputError("name the nodes to restore, or say --all-nodes")
    if uninstall and release:
        raise InputError("--uninstall and --release exclude each other")
    asked = asked_of(kubeconfig, context, namespace, output)

    def tell(outcome: "RestoreOutcome") -> None:
        if not asked.is_json:
            with suppress(ReaderGone):  # the nodes are restored all the same
                click.echo(printable(outcome.told))

    with ApiServer(asked.access) as api:
        outcomes = (
            release_nodes(api, nodes, tell)
            if release
            else restore_nodes(api, nodes, timeout_s=timeout, is_uninstall=uninstall, tell=tell)
        )
    if asked.is_json:
        _print_json(outcomes)
    has_findings = any(each.needs_a_look for each in outcomes)
    return FINDINGS if has_findings and not uninstall else 0


def _print_json(outcomes: "list[RestoreOutcome]") -> None:
    told = {
        "schema_version": 1,
        "nodes": [
            {"node": each.node, "state": each.state, "detail": each.detail} for each in outcomes
        ],
    }
    click.echo(json.dumps(told, indent=2))
