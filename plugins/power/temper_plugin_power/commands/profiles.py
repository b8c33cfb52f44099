"""``temper power profiles``: the stored profiles of a cluster's workloads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from temper_core.console import EXIT_CLEAN, output_option, print_json
from temper_plugin_power.commands.cluster_objects import Source, profile_rows, source_options
from temper_plugin_power.commands.tables import workloads_as_text
from temper_plugin_power.views.profiles import ProfileRow


@click.command("profiles")
@click.option("-n", "--namespace", default="", help="Only those of this namespace.")
@source_options
@output_option
def profiles_command(
    *, namespace: str, objects: Path | None, kubeconfig: Path | None, context: str, output: str
) -> int:
    """Show the WorkloadProfiles of a cluster, with the reason of each.

    Exit codes: 0 done, 2 the file is invalid, 3 no API server, or a right is missing.
    """
    with Source(objects, kubeconfig, context).opened() as source:
        rows = [row for row in profile_rows(source) if namespace in ("", row.workload.namespace)]
    if output == "json":
        print_json({"schema_version": 1, "profiles": [_as_document(row) for row in rows]})
    else:
        click.echo(workloads_as_text(rows) if rows else "no WorkloadProfile")
    return EXIT_CLEAN


def _as_document(row: ProfileRow) -> Mapping[str, Any]:
    profile = row.profile
    return {
        "namespace": row.workload.namespace,
        "kind": row.workload.kind,
        "name": row.workload.name,
        "class": profile.workload_class,
        "confidence": profile.confidence,
        "cpu_bound": profile.cpu.bound,
        "gpu_bound": profile.gpu.bound,
        "reason": profile.reason,
    }
