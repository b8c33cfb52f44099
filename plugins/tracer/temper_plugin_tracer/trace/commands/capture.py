"""``temper trace capture``: capture a trace and fetch it."""

import shlex
import time
from collections.abc import Mapping
from pathlib import Path

import click

from temper_core import InputError, MachineError
from temper_core.console import (
    FiniteRange,
    Progress,
    held_interruptions,
    is_interrupted,
    output_option,
    print_json,
    printable,
    read_settings,
    settings_option,
)
from temper_core.observed import number, text
from temper_plugin_tracer.capture import bounds
from temper_plugin_tracer.capture.backend_names import CHOICES
from temper_plugin_tracer.trace.commands import agent_traces, destination
from temper_plugin_tracer.trace.commands.agent_traces import Row, Settings
from temper_plugin_tracer.trace.commands.progress_bar import MIB, bar, in_words

ASK_AGAIN_S = 0.2
WRITTEN_WITHIN_S = 600.0
"""After its recording. A busy node writes a trace slowly, at the lowest priority."""
UNDER_WAY = frozenset({"recording", "writing"})


@click.command("capture")
@click.option(
    "--seconds",
    type=FiniteRange(min=bounds.LEAST_S, max=bounds.LONGEST_S),
    default=bounds.USUAL_S,
    show_default=True,
    help="Duration of the recording.",
)
@click.option("--pod", default="", metavar="NAMESPACE/NAME", help="Capture this pod only.")
@click.option("--container", default="", help="Capture this container of the pod only.")
@click.option("--cgroup", default="", metavar="PATH", help="Capture this cgroup (v2) only.")
@click.option("--process", type=click.IntRange(1), help="Capture this process only.")
@click.option("--cpus", default="", metavar="LIST", help="Capture these CPUs only, as 0,4-7.")
@click.option(
    "--mib",
    type=FiniteRange(min=bounds.LEAST_BYTES / MIB, max=bounds.MOST_BYTES / MIB),
    default=bounds.USUAL_BYTES / MIB,
    show_default=True,
    help="Size of the trace, at most.",
)
@click.option(
    "--events",
    type=click.IntRange(1, bounds.MOST_EVENTS),
    default=bounds.MOST_EVENTS,
    show_default=True,
    help="Number of events, at most.",
)
@click.option(
    "--backend",
    type=click.Choice(CHOICES),
    help="How it is recorded. By default as the agent's settings say, usually auto.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The file, - for standard output. Without it the trace stays with the agent.",
)
@settings_option
@output_option
def command(  # noqa: PLR0913 - one for each option
    *,
    seconds: float,
    pod: str,
    container: str,
    cgroup: str,
    process: int | None,
    cpus: str,
    mib: float,
    events: int,
    backend: str | None,
    out: Path | None,
    settings_path: Path | None,
    output: str,
) -> None:
    """Capture the scheduler's events of this node, or of a pod, as a trace for Perfetto.

    Ctrl-C ends the recording, and what there is is kept. The exit code is 3 if nothing was
    captured.
    """
    body: dict[str, object] = {
        "seconds": seconds,
        "bytes": int(mib * MIB),
        "events": events,
        "pod": pod,
        "container": container,
        "cgroup": cgroup,
        "cpus": cpu_list(cpus),
    }
    if process is not None:
        body["process"] = process
    if backend is not None:
        body["backend"] = backend
    settings = read_settings(settings_path)
    if out is not None:
        destination.refuse_unusable(out, output)
    finished = _captured(body, settings)
    if out is not None:
        _fetch(text(finished, "id"), out, settings, settings_path)
    if output == "json":
        print_json(finished)
    else:
        is_stdout_taken = out == destination.STANDARD_OUTPUT
        click.echo(printable(in_words(finished)), err=is_stdout_taken)


def cpu_list(written: str) -> list[int]:
    """Return the CPUs of a list such as ``0,4-7``. Raise InputError if it is none."""
    cpus: list[int] = []
    for part in filter(None, written.split(",")):
        first, _, last = part.partition("-")
        if not first.strip().isdecimal() or not (last or first).strip().isdecimal():
            raise InputError(f"--cpus: {written!r} is not a list of CPUs such as 0,4-7")
        begin, end = int(first), int(last or first)
        if end < begin or end >= 1 << 13:
            raise InputError(f"--cpus: {part!r} is not a range of CPUs")
        cpus.extend(range(begin, end + 1))
    return cpus


def _captured(body: Mapping[str, object], settings: Settings) -> Row:
    """Capture, and return the entry of the finished trace."""
    with held_interruptions():
        capture = text(agent_traces.begin(body, settings), "id")
        entry = _awaited(capture, settings, float(str(body["seconds"])) + WRITTEN_WITHIN_S)
    if text(entry, "state") == "failed":
        raise MachineError(f"nothing was captured: {text(entry, 'reason')}")
    return entry


def _fetch(capture: str, out: Path, settings: Settings, settings_path: Path | None) -> None:
    """Copy the trace to *out*. Whatever fails, the trace is with the agent."""
    words = ["temper", "trace", "fetch", capture, "--out", "FILE"]
    if settings_path is not None:
        words += ["--settings", str(settings_path)]
    progress = Progress()
    with destination.still_kept(capture, shlex.join(words)):
        agent_traces.fetch(capture, out, settings, progress.show)
    progress.end(destination.arrival(out))


def _awaited(capture: str, settings: Settings, within_s: float) -> Row:
    """Return the entry of a capture when it is over. An interruption ends its recording.

    A second one raises Abort. Raises MachineError if it is not over *within_s*.
    """
    progress, is_shown, is_ending = Progress("Ctrl-C ends it and keeps what there is"), False, False
    deadline = time.monotonic() + within_s
    while text(entry := agent_traces.entry(capture, settings), "state") in UNDER_WAY:
        if time.monotonic() > deadline:
            raise MachineError(f"the agent is still at the trace {capture}: see temper trace list")
        progress.show(_bar(entry))
        is_shown = True
        if not is_interrupted(ASK_AGAIN_S):
            continue
        if is_ending:
            raise click.Abort
        is_ending = True
        agent_traces.delete(capture, settings)
    if is_shown:
        progress.end("the capture is over")
    return entry


def _bar(entry: Row) -> str:
    elapsed, remaining = number(entry, "elapsed_s") or 0.0, number(entry, "remaining_s") or 0.0
    is_over = text(entry, "state") == "writing"
    return bar(elapsed, elapsed if is_over else elapsed + remaining)
