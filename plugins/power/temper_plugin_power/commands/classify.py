"""``temper power classify``: the power profiles of workloads, by given hints and metrics."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from temper_core.console import bounded_memory, columns, print_json
from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.commands.cases import read_cases

HEADS = ("CASE", "CLASS", "SUMMARY", "REASON")


@click.command("classify")
@click.option(
    "--cases",
    "path",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="A JSON list of {annotations, labels, metrics}; - is standard input.",
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
def classify_command(*, path: Path, derives_class: bool, output: str) -> None:
    """Print the power profile of each case: the status of its WorkloadProfile.

    Metrics are taken as given: cpuUtilPct, memoryPressurePct, gpuUtilPct, cpuBoundRatio,
    memoryBoundRatio, keplerUsed, totalEnergyJ, cpuEnergyJ, dramEnergyJ, gpuEnergyJ, gpuDominant. A
    missing one is 0 or false. A case without any is classified by its annotations and labels alone.
    Exit code 2 if the file is invalid.
    """
    with bounded_memory("the cases take"):
        cases = read_cases(path)
        profiles = [
            classify(case.hints, case.signals, derives_class=derives_class) for case in cases
        ]
        if output == "json":
            now = datetime.now(UTC)
            print_json([profile.status(now) for profile in profiles])
        else:
            click.echo(as_text(profiles))


def as_text(profiles: Sequence[PowerProfile]) -> str:
    """Return a table with a line for each profile, by its place in the list."""
    rows = [
        (str(place), profile.workload_class, profile.summary, profile.reason)
        for place, profile in enumerate(profiles)
    ]
    return "\n".join(columns(HEADS, rows))
