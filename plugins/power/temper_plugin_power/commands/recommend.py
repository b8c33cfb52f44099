"""``temper power recommend``: what the objects of a cluster advise, with causes."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from attrs import asdict

from temper_core.console import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    columns,
    named,
    output_option,
    print_json,
    printable,
)
from temper_plugin_power.commands.cluster_objects import (
    Source,
    now,
    profile_rows,
    source_options,
)
from temper_plugin_power.views.recommending import Advice, advice_of, advised_node
from temper_plugin_power.views.tier_suggestions import untiered_pod

HEADS = ("KIND", "SUBJECT", "NODE", "ADVICE", "CAUSE")
NOTHING = "nothing is advised"


@click.command("recommend")
@source_options
@output_option
def recommend_command(
    *, objects: Path | None, kubeconfig: Path | None, context: str, output: str
) -> int:
    """Show what the objects of a cluster advise, with the causes. Nothing is changed.

    reschedule: workloads that had better be started on another node. slice: how to share the GPUs
    of a node. tier: performance workloads that have no tier.

    Exit codes: 0 nothing is advised, 1 something is, 2 the file is invalid, 3 no API server, or a
    right is missing.
    """
    with Source(objects, kubeconfig, context).opened() as source:
        nodes = source.read("NodeTwin", partial(advised_node, now=now()))
        profiles = {row.workload: row.profile for row in profile_rows(source)}
        advice = advice_of(nodes, source.read("Pod", untiered_pod), profiles)
        stale = sorted(each.row.node for each in nodes if each.row.is_stale)
    if stale:
        left_out = f"stale twins, whose advice is left out: {named(stale)}"
        click.echo(printable(left_out), err=True)
    if output == "json":
        items = [asdict(each) for each in advice]
        print_json({"schema_version": 1, "recommendations": items, "stale_nodes": stale})
    else:
        click.echo(as_text(advice))
    return EXIT_FINDINGS if advice else EXIT_CLEAN


def as_text(advice: Sequence[Advice]) -> str:
    """Return a line for each piece of advice."""
    if not advice:
        return NOTHING
    rows = [(each.kind, each.subject, each.node or "-", each.advice, each.cause) for each in advice]
    return "\n".join(columns(HEADS, rows))
