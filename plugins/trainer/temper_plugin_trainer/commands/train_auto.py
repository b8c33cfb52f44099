"""``temper train auto``: from nothing to a measured profile of a pod, by one command."""

from typing import Any

import click

from temper_core import InputError, configure_logs, load_settings, read_machine
from temper_core.console import (
    EXIT_FINDINGS,
    FiniteRange,
    Progress,
    bounded_memory,
    held_interruptions,
    printable,
    settings_option,
)
from temper_plugin_trainer.commands.artifacts import artifacts_directory
from temper_plugin_trainer.commands.profile_origin import Origin, origin_of
from temper_plugin_trainer.commands.run_options import measuring_options
from temper_plugin_trainer.commands.subjects import source_of
from temper_plugin_trainer.commands.train_run import node_for_trials, show
from temper_plugin_trainer.commands.training_run import TrainingRun
from temper_plugin_trainer.output_files import PRIVATE
from temper_plugin_trainer.process_trees import ProcessSource
from temper_plugin_trainer.refining.benchmark import Asked
from temper_plugin_trainer.refining.benchmark_load import BenchmarkLoad
from temper_plugin_trainer.refining.benchmark_runs import Benchmark
from temper_plugin_trainer.refining.guardian import Guardian
from temper_plugin_trainer.refining.node_facts import facts_here
from temper_plugin_trainer.refining.session import write_atomically
from temper_plugin_trainer.refining.trial_door import Door, way_here
from temper_plugin_trainer.refining.variants import other_starts
from temper_plugin_trainer.refining.window import parsed_window
from temper_plugin_trainer.sampling import SampledInterval
from temper_plugin_trainer.training.agent_watch import AgentWatch
from temper_plugin_trainer.training.bundles import Bundle, packed_bundle
from temper_plugin_trainer.training.observing import made_bundle, observed

BUNDLE = "bundle.gz"
LONGEST_S = 900


@click.command("auto")
@click.option("--pod", metavar="NAMESPACE/NAME", required=True)
@click.option(
    "--pid",
    "pids",
    type=click.IntRange(min=1),
    multiple=True,
    help="Observe this process with its children, if the pod has no cgroup.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=1, max=LONGEST_S),
    default=30,
    show_default=True,
    help="Of the observation.",
)
@measuring_options
@settings_option
def auto_command(
    pod: str,
    pids: tuple[int, ...],
    seconds: float,
    **options: Any,  # noqa: ANN401 - options of click
) -> None:
    """Observe a pod, write a first profile for it, and refine that by a benchmark.

    These are temper train observe, synthesize and run in one. CMD runs once before the
    observation, and then again and again during it, because it may be the load. Besides the first
    profile, variants of it are tried in which threads that compute yield. The exit code is 1 if no
    improvement was found. Ctrl-C ends it. The same command continues, with the bundle of the first
    observation.
    """
    configure_logs("warning")
    settings = load_settings(options["settings_path"])
    options["window"] = parsed_window(options["window"]) if options["window"] is not None else None
    door = Door(way_here(settings), (pod,))
    look = node_for_trials(door, may_observe=options["rehearse"])
    request = door.cpu_request_millis()
    name = options["workload"] or pod.rpartition("/")[2]
    directory = artifacts_directory(options["artifacts"], name)
    guardian = Guardian(options["settings_path"])
    with held_interruptions():
        try:
            if not (directory / BUNDLE).exists():
                asked = Asked(options["metric"], options["better"] or "")
                benchmark = Benchmark(options["benchmark"], asked, options["timeout"])
                source = source_of(pids, None if pids else pod, options["settings_path"])
                _run_once(benchmark, guardian)
                with BenchmarkLoad(benchmark, guardian) as load:
                    bundle = _observed(source, seconds, load, AgentWatch(settings, seconds))
                write_atomically(directory / BUNDLE, packed_bundle(bundle), PRIVATE)
            origin = origin_of(None, directory / BUNDLE, request)
            _tell(origin)
            others = other_starts(origin.table)
            TrainingRun(
                door,
                look,
                facts_here(),
                origin,
                directory,
                guardian,
                request,
                options,
                show,
                others,
            ).run()
        finally:
            guardian.close()


def _run_once(benchmark: Benchmark, guardian: Guardian) -> None:
    """Run the benchmark before the observation: its first run waits for files of the disk.

    Raise as Benchmark.run does.
    """
    progress = Progress("Ctrl-C ends it")
    progress.show("the first run of the benchmark")
    answer = benchmark.run(lambda: "", guardian)
    progress.end(f"the first run of the benchmark: {answer.value:g} {answer.unit}")


def _observed(
    source: ProcessSource, seconds: float, load: BenchmarkLoad, agent: AgentWatch
) -> Bundle:
    """Observe *source* under its load. Raise InputError if that is interrupted, BenchmarkError."""
    progress = Progress("Ctrl-C ends it")

    bound = bounded_memory("the observation takes")

    def show_interval(interval: SampledInterval, passed_s: float) -> None:
        with bound.lifted():  # the benchmark, which may be started here, inherits no bound
            load.keep_up()
        progress.show(f"observing: {passed_s:.0f} s of {seconds:g} s  {interval.threads} threads")

    with bound:
        agent.start()
        result = observed(source, seconds, show_interval)
        progress.end(f"observed {result.load.seconds:.1f} s: {result.load.cpus:.2f} CPUs used")
        if result.is_interrupted:
            raise InputError("interrupted in the observation; the same command begins anew")
        return made_bundle(read_machine(), result, agent)


def _tell(origin: Origin) -> None:
    """Print the groups and what could not be told. Exit with 1 if there is nothing to try."""
    for line in (*origin.groups, *(f"not told: {line}" for line in origin.untold)):
        click.echo(f"temper: {printable(line)}", err=True)
    if not any(group.get("match") for group in origin.table["thread_groups"]):
        click.echo("no improvement found: no thread has a clear class and a name of its own")
        click.get_current_context().exit(EXIT_FINDINGS)
