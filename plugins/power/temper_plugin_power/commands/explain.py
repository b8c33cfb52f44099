"""``temper power explain``: why a workload has its profile, and which consumer uses each field."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from temper_core.console import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    columns,
    output_option,
    print_json,
    printable,
    shown,
)
from temper_plugin_power.commands.cluster_objects import Source, profile_rows, source_options
from temper_plugin_power.views.explaining import explain
from temper_plugin_power.views.profiles import find_profile
from temper_plugin_power.views.tier_suggestions import untiered_pod, workloads_without_tier


@click.command("explain")
@click.argument("workload", metavar="NAMESPACE/WORKLOAD")
@source_options
@output_option
def explain_command(
    *, workload: str, objects: Path | None, kubeconfig: Path | None, context: str, output: str
) -> int:
    """Explain the WorkloadProfile of a workload: NAMESPACE/NAME or NAMESPACE/KIND/NAME.

    It shows each field with its source, the rules with values and limits, what was measured, and
    what filter, score, guard and policy make of it.

    Exit codes: 0 done, 1 it is of class performance and has no tier, 2 there is no such profile or
    the file is invalid, 3 no API server, or a right is missing.
    """
    with Source(objects, kubeconfig, context).opened() as source:
        row = find_profile(profile_rows(source), workload)
        pods = source.read("Pod", untiered_pod)
        without = workloads_without_tier(pods, {row.workload: row.profile})
        explained = explain(row, without_tier=row.workload in without)
    if output == "json":
        print_json({"schema_version": 1, **explained})
    else:
        click.echo("\n".join(as_lines(explained)))
    return EXIT_FINDINGS if explained["suggestions"] else EXIT_CLEAN


def as_lines(explained: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of an explanation."""
    yield printable("/".join(explained["workload"].values()))
    yield f"confidence {explained['confidence']:g}"
    yield ""
    fields = [
        (
            each["field"],
            shown(each["value"]).lower() or "-",
            each["source"],
            "" if each["counts"] else "does not count",
        )
        for each in explained["fields"]
    ]
    yield from columns(("FIELD", "VALUE", "SOURCE", ""), fields)
    yield from _listed("rules", explained["rules"])
    evidence = [f"{key} {shown(value)}" for key, value in explained["evidence"].items()]
    yield from _listed("measured", evidence)
    consumers = [f"{each['consumer']}: {each['effect']}" for each in explained["consumers"]]
    yield from _listed("consumers", consumers)
    yield from _listed("suggestions", explained["suggestions"])


def _listed(head: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{head}:"
        yield from (f"  {printable(line)}" for line in lines)
