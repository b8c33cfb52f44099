"""``temper trace flight-recorder start``."""

from pathlib import Path

import click

from temper_core.console import FiniteRange, printable, read_settings, settings_option
from temper_core.observed import text
from temper_plugin_tracer.capture import bounds, flight_request
from temper_plugin_tracer.trace.commands import agent_traces
from temper_plugin_tracer.trace.commands.capture import cpu_list
from temper_plugin_tracer.trace.commands.progress_bar import MIB


@click.command("start")
@click.option(
    "--seconds",
    type=FiniteRange(
        min=flight_request.LEAST_DURATION_S,
        max=flight_request.LONGEST_DURATION_S,
    ),
    default=flight_request.USUAL_DURATION_S,
    show_default=True,
    help="How long it records. It ends without a trace if nothing has happened.",
)
@click.option(
    "--kept-seconds",
    type=FiniteRange(
        min=flight_request.LEAST_KEPT_S,
        max=flight_request.LONGEST_KEPT_S,
    ),
    default=flight_request.USUAL_KEPT_S,
    show_default=True,
    help="How much of the time before its writing a trace has, at most.",
)
@click.option(
    "--violation",
    "violations",
    multiple=True,
    metavar="INVARIANT",
    help="Write the trace when a violation of this invariant begins. May be repeated.",
)
@click.option(
    "--cpu-percent",
    type=FiniteRange(
        min=flight_request.LEAST_CPU_RATIO * 100,
        max=flight_request.MOST_CPU_RATIO * 100,
    ),
    default=flight_request.USUAL_CPU_RATIO * 100,
    show_default=True,
    help="The percentage of one core beyond which it ends itself.",
)
@click.option("--pod", default="", metavar="NAMESPACE/NAME", help="Record this pod only.")
@click.option("--container", default="", help="Record this container of the pod only.")
@click.option("--cgroup", default="", metavar="PATH", help="Record this cgroup (v2) only.")
@click.option("--process", type=click.IntRange(1), help="Record this process only.")
@click.option("--cpus", default="", metavar="LIST", help="Record these CPUs only, as 0,4-7.")
@click.option(
    "--mib",
    type=FiniteRange(min=bounds.LEAST_BYTES / MIB, max=bounds.MOST_BYTES / MIB),
    default=bounds.USUAL_BYTES / MIB,
    show_default=True,
    help="Size of the trace, at most.",
)
@settings_option
def command(  # noqa: PLR0913 - one for each option
    *,
    seconds: float,
    kept_seconds: float,
    violations: tuple[str, ...],
    cpu_percent: float,
    pod: str,
    container: str,
    cgroup: str,
    process: int | None,
    cpus: str,
    mib: float,
    settings_path: Path | None,
) -> None:
    """Keep the newest events of this node, or of a pod, for some time.

    They are written as a trace when a named violation begins, or by 'dump'. That ends the
    recording.
    """
    body: dict[str, object] = {
        "seconds": seconds,
        "kept_seconds": kept_seconds,
        "violations": list(violations),
        "cpu_ratio": cpu_percent / 100,
        "bytes": int(mib * MIB),
        "pod": pod,
        "container": container,
        "cgroup": cgroup,
        "cpus": cpu_list(cpus),
    }
    if process is not None:
        body["process"] = process
    state = agent_traces.flight_recorder("POST", read_settings(settings_path), body=body)
    click.echo(printable(f"the flight recorder runs; its trace will be {text(state, 'id')}"))
