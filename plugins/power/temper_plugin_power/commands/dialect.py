"""``temper power dialect``: the dialect of the energy in a Prometheus, and its evidence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from temper_core.console import EXIT_CLEAN, EXIT_FINDINGS, columns, output_option, print_json, shown
from temper_plugin_power.commands.pod_sources import pods_of
from temper_plugin_power.commands.prometheus_options import (
    PrometheusQuestion,
    prometheus_options,
)
from temper_plugin_power.measuring.measuring import Measured
from temper_plugin_power.measuring.readings import with_measures
from temper_plugin_power.workloads.energy import Dialect, ratios_of

KEPLER = "kepler_"
HEADS = ("NODE", "PODS", "SPREAD", "RATIOS")
VERDICTS = {
    Dialect.OLD: "energy by counters of the processor: its ratios show what bounds a pod",
    Dialect.NEW: "energy shared by CPU time: its ratios are the same for all pods of a node",
    Dialect.NONE: "no energy of pods",
}


@click.command("dialect")
@prometheus_options
@click.option(
    "--pods",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A PodList. Without it the pods are those of the cluster.",
)
@output_option
def dialect_command(*, asked: PrometheusQuestion, pods: Path | None, output: str) -> int:
    """Show the dialect of Kepler in a Prometheus, and whether its energy differs by pod.

    For each node the ratios of DRAM to package energy of its pods are compared. If five pods or
    more have one ratio, the energy does not differ by pod. Exit code 1 if this holds for all pods
    or no pod has energy, 2 for a wrong option, 3 if a server does not answer.
    """
    if asked.url is None:
        raise click.UsageError("give --prometheus")
    measured = asked.ask()
    found = with_measures(pods_of(pods, asked.kubeconfig).pods, measured.measures)
    ratios = ratios_of(found)
    energetic = sorted(key for key, each in measured.measures.items() if each.has_energy)
    known = {pod.pod.key for pod in found}
    matched = [key for key in energetic if key in known]
    unmatched = [key for key in energetic if key not in known]
    says = measured.dialect is Dialect.OLD and any(not each.are_one for each in ratios.values())
    document = {
        "dialect": str(measured.dialect),
        "verdict": VERDICTS[measured.dialect],
        "families": _families(measured),
        "labels": list(measured.energy_labels),
        "podsWithEnergy": len(matched),
        "unknownPods": unmatched[:10],
        "nodes": {
            node or "none": {"pods": each.pods, "spread": each.spread, "areOne": each.are_one}
            for node, each in sorted(ratios.items())
        },
        "says": says,
    }
    if output == "json":
        print_json(document)
    else:
        click.echo(_as_text(document))
    return EXIT_CLEAN if says else EXIT_FINDINGS


def _families(measured: Measured) -> list[str]:
    return sorted(family for family in measured.families if family.startswith(KEPLER))


def _as_text(document: Mapping[str, Any]) -> str:
    families = ", ".join(document["families"]) or "none"
    lines = [
        f"dialect: {document['dialect']}, {document['verdict']}",
        f"families: {families}",
        f"labels: {', '.join(map(shown, document['labels'])) or 'none'}",
        f"pods with energy: {document['podsWithEnergy']}",
    ]
    if document["unknownPods"]:
        unknown = ", ".join(map(shown, document["unknownPods"]))
        lines.append(f"series of pods that are not known: {unknown}")
    rows = [
        (node, str(each["pods"]), f"{each['spread']:.1%}", "one" if each["areOne"] else "differ")
        for node, each in document["nodes"].items()
    ]
    return "\n".join((*lines, *(columns(HEADS, rows) if rows else ())))
