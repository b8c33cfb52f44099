"""``temper train observe``: observe the threads of a program under load, into one bundle file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import click
from attrs import evolve

from temper_core import InputError, configure_logs, load_settings, read_machine
from temper_core.console import (
    EXIT_FINDINGS,
    FiniteRange,
    Progress,
    bounded_memory,
    held_interruptions,
    is_interrupted,
    print_bytes,
    printable,
    settings_option,
)
from temper_plugin_trainer.commands.bundle_traces import bundle_trace
from temper_plugin_trainer.commands.subjects import source_of
from temper_plugin_trainer.output_files import reserved, write_whole
from temper_plugin_trainer.process_trees import ProcessSource, ProcessTrees
from temper_plugin_trainer.sampling import NS_PER_S, SampledInterval
from temper_plugin_trainer.training.agent_watch import AgentWatch
from temper_plugin_trainer.training.bundles import Bundle, BundleTrace, packed_bundle
from temper_plugin_trainer.training.observing import NOT_ASKED, Observed, made_bundle, observed
from temper_plugin_trainer.training.started_command import started

LONGEST_S = 900


@click.command("observe")
@click.option("--pid", "pids", type=click.IntRange(min=1), multiple=True, help="With its children.")
@click.option("--pod", metavar="NAMESPACE/NAME", help="All containers of a pod of this node.")
@click.option("--command", "line", metavar="CMD", help="Start CMD, and end it afterwards.")
@click.option("--seconds", type=FiniteRange(min=1, max=LONGEST_S), default=30, show_default=True)
@click.option(
    "--warm-up",
    type=FiniteRange(min=0, max=LONGEST_S),
    default=0,
    show_default=True,
    help="Seconds to wait before.",
)
@click.option("--no-agent", is_flag=True, help="Ask no agent for wake-ups and observations.")
@click.option(
    "--trace",
    is_flag=True,
    help="Add a kernel trace of 3 s and 2 MiB at most, by the agent, after the observation.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The bundle, a file to make; - is standard output.",
)
@settings_option
def observe_command(
    pids: tuple[int, ...],
    pod: str | None,
    line: str | None,
    output: Path,
    **options: Any,  # noqa: ANN401 - options of click
) -> None:
    """Observe the threads of a program under load, and write one bundle file.

    Samples CPU time, waits, sleeps and wait channels of every thread, children included. If an
    agent answers, its windows of wake-ups and its observations are added. Keep the load steady.
    The exit code is 1 if the load was not representative: idle, unsteady, or too few wake-ups. The
    bundle is written then, too. Ctrl-C ends the observation early.
    """
    if (bool(pids), pod is not None, line is not None).count(True) != 1:
        raise click.UsageError("name the program by one of --pid, --pod and --command")
    if options["trace"] and (options["no_agent"] or len(pids) > 1):
        raise click.UsageError("--trace asks an agent for a trace of one pod or process")
    configure_logs("warning")
    settings = load_settings(options["settings_path"])
    with (
        reserved(output) as file,
        held_interruptions(),
        _source(pids, pod, line, options) as source,
    ):
        agent = None if options["no_agent"] else AgentWatch(settings, options["seconds"])
        with bounded_memory("the observation takes"):  # the command inherits no bound
            result = _observe(source, agent, options)
            bundle = made_bundle(read_machine(), result, agent)
        if options["trace"] and not result.is_interrupted:
            bundle = evolve(bundle, trace=_traced(pod, pids, source, settings))
        _write(packed_bundle(bundle), output, file)
    _tell(bundle, output)
    click.get_current_context().exit(EXIT_FINDINGS if bundle.problems else 0)


def _traced(
    pod: str | None,
    pids: tuple[int, ...],
    source: ProcessSource,
    settings: Any,  # noqa: ANN401 - as of load_settings
) -> BundleTrace:
    if pod is not None:
        return bundle_trace(settings, {"pod": pod})
    process = pids[0] if pids else min(source.processes(), default=0)
    if not process:
        return BundleTrace("the program has ended")
    return bundle_trace(settings, {"process": process})


@contextmanager
def _source(
    pids: tuple[int, ...],
    pod: str | None,
    line: str | None,
    options: dict[str, Any],
) -> Iterator[ProcessSource]:
    if line is None:
        yield source_of(pids, pod, options["settings_path"])
        return
    with started(line) as pid:
        yield ProcessTrees([pid])


def _observe(source: ProcessSource, agent: AgentWatch | None, options: dict[str, Any]) -> Observed:
    seconds, warm_up = options["seconds"], options["warm_up"]
    progress = Progress("Ctrl-C ends it early")
    if warm_up:
        progress.show(f"warming up for {warm_up:g} s")
        if is_interrupted(warm_up):
            raise InputError("interrupted before the observation began")
    if agent:
        agent.start()
    result = observed(source, seconds, _shown(progress, seconds))
    load = result.load
    progress.end(
        f"observed {load.seconds:.1f} s: {load.cpus:.2f} CPUs used, {load.sleeps} wake-ups"
    )
    return result


def _shown(progress: Progress, seconds: float) -> Callable[[SampledInterval, float], None]:
    def show(interval: SampledInterval, passed_s: float) -> None:
        cpus = interval.used.run_ns / NS_PER_S / interval.seconds if interval.seconds else 0.0
        progress.show(
            f"{passed_s:.0f} s of {seconds:g} s  {interval.threads} threads  {cpus:.2f} CPUs"
        )

    return show


def _write(packed: bytes, output: Path, file: FileIO | None) -> None:
    if file is None:
        print_bytes(packed)
    else:
        write_whole(file, packed, output)


def _tell(bundle: Bundle, output: Path) -> None:
    """Print the verdict on the load, and what the agent did not answer."""

    def say(line: str) -> None:
        click.echo(f"temper: {printable(line)}", err=True)

    agent = bundle.agent
    if agent.reason and agent.reason != NOT_ASKED:
        say(f"without an agent: {agent.reason}")
    elif agent.wakes.reason and not agent.reason:
        say(f"without wake-ups: {agent.wakes.reason}")
    if bundle.left_out:
        say(f"{bundle.left_out} threads have no record, {bundle.left_out_cpus:.2f} CPUs used")
    say(f"{output}: {len(bundle.threads)} threads, {bundle.cpus_used:.2f} CPUs used")
    for problem in bundle.problems:
        say(f"the load was not representative: {problem}")
    if not bundle.problems:
        say("the load was representative: steady and not idle")
    trace = bundle.trace
    if trace is not None:
        events = f"{trace.events} events in {trace.seconds:.1f} s"
        say(f"without a trace: {trace.reason}" if trace.reason else f"a trace of {events}")
