"""``temper train synthesize``: a profile for the threads of a bundle, with its arithmetic."""

import sys
from pathlib import Path

import click

from temper_core import InputError, cpu_millis
from temper_core.console import EXIT_FINDINGS, bounded_memory, printable
from temper_plugin_trainer.output_files import SHARED, reserved, write_whole
from temper_plugin_trainer.training.bundles import Bundle, read_bundle
from temper_plugin_trainer.training.grouping import analyse
from temper_plugin_trainer.training.synthesis import Synthesis, Wanted, synthesise

LEAST_COVERED = 0.9


@click.command("synthesize")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--id", "wanted_id", default="", help="Of the profile; the program by default.")
@click.option(
    "--image",
    "images",
    metavar="GLOB",
    multiple=True,
    help="Of the pods; by default the process's name recognises them.",
)
@click.option(
    "--cpu-request",
    "request",
    metavar="QUANTITY",
    help="Of the pod, for cpu_fraction; what the load used by default.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("-"),
    help="A file to make; standard output by default.",
)
def synthesize_command(
    bundle: Path, wanted_id: str, images: tuple[str, ...], request: str | None, output: Path
) -> None:
    """Write a profile for the threads of BUNDLE, a file of temper train observe.

    Each class becomes a thread group: sync compute gets exclusive cores, I/O wake chains and
    latency critical threads latency, sporadic ones yield. Comments have the numbers. It is a first
    candidate, not measured yet. The exit code is 1 if its groups cover less than 90 % of the CPU
    time or take threads of another class, or if the load was not representative.
    """
    with bounded_memory("the bundle takes"):
        read = read_bundle(bundle)
    wanted = Wanted(wanted_id, images, _millis(request))
    with reserved(output, SHARED) as file:
        result = synthesise(read, analyse(read), wanted, str(output))
        if file is None:
            sys.stdout.write(result.text)
        else:
            write_whole(file, result.text.encode(), output)
    is_bad = _tell(read, result)
    click.get_current_context().exit(EXIT_FINDINGS if is_bad or read.problems else 0)


def _millis(request: str | None) -> int | None:
    if request is None:
        return None
    try:
        millis = cpu_millis(request)
    except InputError as error:
        raise InputError(f"--cpu-request: {error}") from error
    if not millis:
        raise InputError("--cpu-request: must be more than 0")
    return millis


def _tell(bundle: Bundle, result: Synthesis) -> bool:
    """Print the coverage with what is not covered. Return whether it is too low, or wrong."""
    covered = result.coverage.covered_share
    is_short = covered < LEAST_COVERED
    lines = [f"{100 * covered:.1f} % of the CPU time is covered by groups with a match"]
    if is_short:
        lines[0] += f", less than {100 * LEAST_COVERED:.0f} %"
    lines += result.misplaced
    lines += [f"left to the rest: {line}" for line in result.left_out]
    lines += [f"the load was not representative: {problem}" for problem in bundle.problems]
    for line in lines:
        click.echo(f"temper: {printable(line)}", err=True)
    return is_short or bool(result.misplaced)
