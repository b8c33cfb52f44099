"""``temper profiles record``: write the threads of a live program to a file, to test profiles."""

import platform
import sys
import time
from io import FileIO
from pathlib import Path
from typing import Any

import click

from temper_core import read_machine
from temper_core.console import FiniteRange, bounded_memory, held_interruptions, is_interrupted
from temper_plugin_trainer.commands.subjects import source_of
from temper_plugin_trainer.output_files import reserved, write_whole
from temper_plugin_trainer.process_trees import ProcessSource
from temper_plugin_trainer.recording import UNKNOWN, drafted_table, recorded_table
from temper_plugin_trainer.sampling import ThreadSampler
from temper_plugin_trainer.thread_tables import ThreadTable, thread_table_text

LOOK_EVERY_S = 0.5


@click.command("record")
@click.option("--pid", "pids", type=click.IntRange(min=1), multiple=True, help="With its children.")
@click.option("--pod", metavar="NAMESPACE/NAME", help="All containers of a pod of this node.")
@click.option("--seconds", type=FiniteRange(min=1, max=3_600), default=10, show_default=True)
@click.option("--program", help="What it is called; the name of its process by default.")
@click.option("--version", default=UNKNOWN, help="Of the program.")
@click.option("--command", "repeated_by", default=UNKNOWN, help="What repeats this recording.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("-"), help="A file to make."
)
@click.option("--settings", type=click.Path(path_type=Path), help="Settings file (TOML).")
def command(
    pids: tuple[int, ...],
    pod: str | None,
    seconds: float,
    output: Path,
    **options: Any,  # noqa: ANN401 - options of click
) -> None:
    """Record the threads of a live program, by process or by pod, while it is under load.

    Samples names, CPU time, waits and wake-ups of every thread twice a second, including children
    and short-lived threads. Paths are cut to their last part. Values of options whose names mean a
    secret or a user are hidden. Still review the file before you publish it.
    Ctrl-C ends the recording early and keeps the samples.
    """
    if bool(pids) == (pod is not None):
        raise click.UsageError("name the program by --pid or by --pod")
    draft = _draft(options["program"], options["version"], options["repeated_by"])
    with reserved(output) as file, bounded_memory("the recording takes"):
        sampler = _sampled(source_of(pids, pod, options["settings"]), seconds)
        sampler.close()
        _write(recorded_table(draft, sampler), output, file)


def _sampled(source: ProcessSource, seconds: float) -> ThreadSampler:
    sampler = ThreadSampler(source, host=platform.node())
    ends_at = time.monotonic() + seconds
    with held_interruptions():
        sampler.look()
        is_ended = False
        while not (is_ended or sampler.is_over) and (left_s := ends_at - time.monotonic()) > 0:
            is_ended = is_interrupted(min(LOOK_EVERY_S, left_s))
            sampler.look()
    if is_ended:
        click.echo("temper: interrupted; what was recorded until then is kept", err=True)
    if sampler.is_over:
        click.echo("temper: the program has ended", err=True)
    return sampler


def _draft(program: str | None, version: str, repeated_by: str) -> ThreadTable:
    return drafted_table(
        read_machine(), program=program or "", version=version, command=repeated_by
    )


def _write(table: ThreadTable, output: Path, file: FileIO | None) -> None:
    text = thread_table_text(table)
    if file is None:
        sys.stdout.write(text)
        return
    write_whole(file, text.encode(), output)
    threads = sum(row.count for row in table.threads)
    used = f"{table.cpus_used:.2f} CPUs used in {table.seconds:.1f} s"
    click.echo(
        f"temper: {output}: {threads} threads in {len(table.threads)} rows, {used}", err=True
    )
