"""``temper profiles record``: write the threads of a live program to a file, to test profiles."""

import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import click

from temper_core import (
    InputError,
    configure_logs,
    find_pod_cgroups,
    load_settings,
    read_machine,
)
from temper_core.console import FiniteRange, held_interruptions, is_interrupted
from temper_plugin_trainer.process_trees import CgroupProcesses, ProcessSource, ProcessTrees
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
    with _reserved(output) as file:
        sampler = _sampled(_source(pids, pod, options["settings"]), seconds)
        sampler.close()
        _write(recorded_table(draft, sampler), output, file)


def _source(pids: tuple[int, ...], pod: str | None, settings: Path | None) -> ProcessSource:
    if pod is None:
        return ProcessTrees(pids)
    configure_logs("warning")
    cgroups = find_pod_cgroups(pod, load_settings(settings))
    return CgroupProcesses(cgroups.directories, cgroups.container)


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


@contextmanager
def _reserved(output: Path) -> Iterator[FileIO | None]:
    """Create the file before recording, and remove it if nothing was recorded.

    It stays open, since the owner of its directory may put a link in its place meanwhile.
    """
    if str(output) == "-":
        yield None
        return
    try:
        file = output.open("xb", buffering=0)
    except FileExistsError as error:
        why = "already exists; remove it or name another file"
        raise InputError(f"{output}: {why}") from error
    except OSError as error:
        raise InputError(f"{output}: {error.strerror or error}") from error
    is_written = False
    try:
        with file:
            yield file
        is_written = True
    finally:
        if not is_written:
            output.unlink(missing_ok=True)


def _write(table: ThreadTable, output: Path, file: FileIO | None) -> None:
    text = thread_table_text(table)
    if file is None:
        sys.stdout.write(text)
        return
    left = text.encode()
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise InputError(f"{output}: {error.strerror or error}") from error
    threads = sum(row.count for row in table.threads)
    used = f"{table.cpus_used:.2f} CPUs used in {table.seconds:.1f} s"
    click.echo(
        f"temper: {output}: {threads} threads in {len(table.threads)} rows, {used}", err=True
    )
