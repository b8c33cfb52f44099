"""``temper power classify``: the power profiles of workloads, by files."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from temper_core.console import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    bounded_memory,
    columns,
    named,
    print_json,
    printable,
)
from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.commands.cases import read_cases
from temper_plugin_power.commands.pod_files import Metrics, read_metrics, read_pod_file
from temper_plugin_power.workloads.profiling import WorkloadProfile, profile_workloads

CASE_HEADS = ("CASE", "CLASS", "SUMMARY", "REASON")
HEADS = ("NAMESPACE", "NAME", "CLASS", "CONFIDENCE", "CPU-BOUND", "GPU-BOUND", "REASON")


@click.command("classify")
@click.option(
    "--cases",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A JSON list of {annotations, labels, metrics}; - is standard input.",
)
@click.option(
    "--pods",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A PodList, as kubectl get pods -A -o json prints it; - is standard input.",
)
@click.option(
    "--metrics",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The metrics of the pods (JSON). Without it only their hints count.",
)
@click.option(
    "--derive-class",
    "derives_class",
    is_flag=True,
    help="Workloads without a class that drive CPU or GPU hard are of class performance.",
)
@click.option(
    "-o", "--output", type=click.Choice(["json", "table"]), default="json", show_default=True
)
def classify_command(
    *,
    cases: Path | None,
    pods: Path | None,
    metrics: Path | None,
    derives_class: bool,
    output: str,
) -> int:
    """Print the power profiles of the workloads of a PodList, or of cases.

    --pods prints a WorkloadProfile for each workload. --cases audits the rules: it prints the
    status of a WorkloadProfile for each case. The metrics of a case are taken as given: cpuUtilPct,
    memoryPressurePct, gpuUtilPct, cpuBoundRatio, memoryBoundRatio, keplerUsed, totalEnergyJ,
    cpuEnergyJ, dramEnergyJ, gpuEnergyJ, gpuDominant. A missing one is 0 or false. A case without
    any is classified by its annotations and labels alone.

    Exit code 1 if a pod of the list is left out because it is invalid, 2 if a file is invalid.
    """
    if cases is not None and pods is None and metrics is None:
        return _classify_cases(cases, derives_class=derives_class, output=output)
    if pods is None or cases is not None:
        raise click.UsageError("give either --cases, or --pods with or without --metrics")
    return _classify_pods(pods, metrics, derives_class=derives_class, output=output)


def _classify_pods(path: Path, metrics: Path | None, *, derives_class: bool, output: str) -> int:
    with bounded_memory("the pods take"):
        given = Metrics() if metrics is None else read_metrics(metrics)
        file = read_pod_file(path)
        profiles = profile_workloads(
            file.with_metrics(given),
            dialect=given.dialect,
            window_s=given.window_s,
            derives_class=derives_class,
        )
    unknown = file.unknown(given)
    told = [f"metrics of pods that are not in the list: {named(unknown)}"] if unknown else []
    for line in (*file.left_out, *told):
        click.echo(printable(line), err=True)
    if output == "json":
        now = datetime.now(UTC)
        items = [profile.as_object(now) for profile in profiles]
        print_json({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        click.echo(workloads_as_text(profiles))
    return EXIT_FINDINGS if file.left_out else EXIT_CLEAN


def _classify_cases(path: Path, *, derives_class: bool, output: str) -> int:
    with bounded_memory("the cases take"):
        cases = read_cases(path)
        profiles = [
            classify(case.hints, case.signals, derives_class=derives_class) for case in cases
        ]
        if output == "json":
            now = datetime.now(UTC)
            print_json([profile.status(now) for profile in profiles])
        else:
            click.echo(cases_as_text(profiles))
    return EXIT_CLEAN


def cases_as_text(profiles: Sequence[PowerProfile]) -> str:
    """Return a table with a line for each profile, by its place in the list."""
    rows = [
        (str(place), profile.workload_class, profile.summary, profile.reason)
        for place, profile in enumerate(profiles)
    ]
    return "\n".join(columns(CASE_HEADS, rows))


def workloads_as_text(profiles: Sequence[WorkloadProfile]) -> str:
    """Return a table with a line for each workload."""
    rows = [
        (
            each.workload.namespace,
            each.workload.object_name,
            each.profile.workload_class,
            f"{each.profile.confidence:.1f}",
            each.profile.cpu.bound,
            each.profile.gpu.bound,
            each.profile.reason,
        )
        for each in profiles
    ]
    return "\n".join(columns(HEADS, rows))
