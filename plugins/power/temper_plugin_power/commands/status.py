"""``temper power status``: the nodes of a cluster by their twins."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from temper_core.console import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    age,
    columns,
    output_option,
    print_json,
    printable,
    watch_options,
)
from temper_plugin_power.commands.cluster_objects import (
    Source,
    node_rows,
    now,
    profile_rows,
    source_options,
)
from temper_plugin_power.views.nodes import NodeRow, totals
from temper_plugin_power.views.tier_suggestions import (
    suggestion,
    untiered_pod,
    workloads_without_tier,
)

HEADS = (*("NODE", "CLASS", "HEADROOM", "COOLING", "PSU", "CPU-CAP", "GPU-CAP", "DENSITY", "AGE"),)
MOST_SUGGESTIONS = 20


@click.command("status")
@source_options
@output_option
@watch_options
def status_command(
    *, objects: Path | None, kubeconfig: Path | None, context: str, output: str
) -> int:
    """Show the nodes of a cluster by their NodeTwins, and performance workloads without a tier.

    Exit codes: 0 done, 1 a twin is older than five minutes or a performance workload has no tier,
    2 the file is invalid, 3 no API server, or a right is missing.
    """
    with Source(objects, kubeconfig, context).opened() as source:
        rows = node_rows(source, now())
        profiles = {row.workload: row.profile for row in profile_rows(source)}
        pods = source.read("Pod", untiered_pod)
        without = [suggestion(each) for each in workloads_without_tier(pods, profiles)]
    if output == "json":
        document = {
            "schema_version": 1,
            "totals": totals(rows),
            "nodes": [_as_document(row) for row in rows],
            "suggestions": without,
        }
        print_json(document)
    else:
        click.echo(as_text(rows, without))
    return EXIT_FINDINGS if without or any(row.is_stale for row in rows) else EXIT_CLEAN


def as_text(rows: Sequence[NodeRow], suggestions: Sequence[str]) -> str:
    """Return the totals, a line for each node, and some of the suggestions."""
    counts = totals(rows)
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    lines = [summary, "", *columns(HEADS, [_cells(row) for row in rows])] if rows else [summary]
    if suggestions:
        lines += ["", *map(printable, suggestions[:MOST_SUGGESTIONS])]
        if (more := len(suggestions) - MOST_SUGGESTIONS) > 0:
            lines.append(f"and {more} more")
    return "\n".join(lines)


def _as_document(row: NodeRow) -> Mapping[str, Any]:
    return {"node": row.node, **asdict(row.twin), "age_s": row.age_s, "stale": row.is_stale}


def _cells(row: NodeRow) -> tuple[str, ...]:
    twin = row.twin
    figures = (twin.headroom, twin.cooling_stress, twin.psu_stress)
    caps = (twin.cpu_pct, twin.gpu_pct)
    return (
        *(row.node, twin.schedulable_class, *(f"{each:.1f}" for each in figures)),
        *(f"{each:.0f}%" if each > 0 else "-" for each in caps),
        f"{twin.density:.1f}",
        age(row.age_s) + (" stale" if row.is_stale else ""),
    )
