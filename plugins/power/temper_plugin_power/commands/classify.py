"""``temper power classify``: the power profiles of workloads, by files or a Prometheus."""

from datetime import UTC, datetime
from pathlib import Path

import click

from temper_core.console import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    bounded_memory,
    named,
    output_formats,
    print_json,
    printable,
)
from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.commands.cases import read_cases
from temper_plugin_power.commands.pod_files import Metrics, PodFile, read_metrics
from temper_plugin_power.commands.pod_sources import pods_of
from temper_plugin_power.commands.profiling_options import ProfilingQuestion, profiling_options
from temper_plugin_power.commands.prometheus_options import (
    PrometheusQuestion,
    prometheus_options,
)
from temper_plugin_power.commands.tables import cases_as_text, workloads_as_text
from temper_plugin_power.workloads.profiling import ProfilingChoices, profile_workloads

SOURCES = "give either --cases, or --pods with or without --metrics, or --prometheus"


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
    help="The metrics of the pods (JSON). Without it and --prometheus only their hints count.",
)
@prometheus_options
@profiling_options
@output_formats("json", "table", default="json")
def classify_command(
    *,
    cases: Path | None,
    pods: Path | None,
    metrics: Path | None,
    asked: PrometheusQuestion,
    profiling: ProfilingQuestion,
    output: str,
) -> int:
    """Print the power profiles of workloads, or of cases.

    --pods prints a WorkloadProfile for each workload of a PodList. With --prometheus their metrics
    come from there, and without --pods the pods are those of the cluster. Nothing is written.

    --cases audits the rules: it prints the
    status of a WorkloadProfile for each case. The metrics of a case are taken as given: cpuUtilPct,
    memoryPressurePct, gpuUtilPct, cpuBoundRatio, memoryBoundRatio, keplerUsed, totalEnergyJ,
    cpuEnergyJ, dramEnergyJ, gpuEnergyJ, gpuDominant. A missing one is 0 or false. A case without
    any is classified by its annotations and labels alone.

    Exit code 1 if a pod or a thread profile is left out because it is invalid, 2 if a file is
    invalid, 3 if a server does not answer.
    """
    given_sources = [source for source in (cases, metrics, asked.url) if source is not None]
    is_nothing = not given_sources and pods is None
    if len(given_sources) > 1 or is_nothing or (cases and pods):
        raise click.UsageError(SOURCES)
    if cases is not None and profiling.thread_profiles is not None:
        raise click.UsageError("--thread-profiles is for pods, and --cases has none")
    if cases is not None:
        return _classify_cases(cases, derives_class=profiling.derives_class, output=output)
    if pods is None and asked.url is None:
        raise click.UsageError(SOURCES)
    with bounded_memory("the pods take"):
        file = pods_of(pods, asked.kubeconfig)
        given = Metrics() if metrics is None else read_metrics(metrics)
        if asked.url is not None:
            measured = asked.ask()
            window_s = asked.window_s or given.window_s
            given = Metrics(window_s, measured.dialect, measured.measures)
        known = profiling.read()
        unknown = file.unknown(given) if metrics is not None else []
        left_out = (*file.left_out, *known.left_out)
        told = [f"metrics of pods that are not in the list: {named(unknown)}"] if unknown else []
        for line in (*left_out, *told):
            click.echo(printable(line), err=True)
        _print_profiles(file, given, profiling.choices(known), output)
    return EXIT_FINDINGS if left_out else EXIT_CLEAN


def _print_profiles(file: PodFile, given: Metrics, choices: ProfilingChoices, output: str) -> None:
    profiles = profile_workloads(
        file.with_metrics(given),
        dialect=given.dialect,
        window_s=given.window_s,
        choices=choices,
    )
    if output == "json":
        now = datetime.now(UTC)
        items = [profile.as_object(now) for profile in profiles]
        print_json({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        click.echo(workloads_as_text(profiles))


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
