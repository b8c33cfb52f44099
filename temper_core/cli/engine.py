"""``temper engine``: judge configurations of the engine."""

import sys

import click

from temper_core.engine.problems import Problem, Severity
from temper_core.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INPUT

SCHEMA_VERSION = 1


@click.group("engine")
def command() -> None:
    """Judge a configuration of the engine, scx_layered."""


@command.command("check")
@click.argument("file", metavar="FILE|-")
@click.option("--engine-version", metavar="VERSION", help="What `scx_layered --version` prints.")
@click.option("--cpus", type=click.IntRange(min=1), help="How many CPUs the engine will find.")
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="OPTION",
    help="An option the engine is started with, such as --argument=--task-hint-map=PATH.",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table")
@click.pass_context
def check_command(
    context: click.Context,
    file: str,
    engine_version: str | None,
    cpus: int | None,
    arguments: tuple[str, ...],
    output: str,
) -> None:
    """Say what scx_layered would make of the configuration in FILE.

    Exit 2 where the engine would refuse it, crash on it or be ejected for it; 1 where it would
    silently ignore or misread something; 0 otherwise.
    """
    from temper_core.engine.capabilities import capabilities_of
    from temper_core.engine.configuration_check import check

    capabilities = capabilities_of(engine_version)
    problems = check(_read(file), capabilities, arguments=arguments, cpus=cpus)
    if capabilities.assumed:
        click.echo(capabilities.assumption, err=True)
    if output == "json":
        _print_json(problems, capabilities.version, capabilities.known_as)
    else:
        _print_lines(problems, capabilities.version)
    context.exit(_exit_code(problems))


def _read(file: str) -> str:
    from pathlib import Path

    from temper_core.documents import read_stream, read_text

    if file != "-":
        return read_text(Path(file), pipes=True)
    return read_stream(sys.stdin.buffer, source="-")


def _exit_code(problems: tuple[Problem, ...]) -> int:
    if any(problem.severity is Severity.REFUSED for problem in problems):
        return EXIT_INPUT
    return EXIT_FINDINGS if problems else EXIT_CLEAN


def _print_json(problems: tuple[Problem, ...], version: str, known_as: str) -> None:
    import json

    import attrs

    document = {
        "schema_version": SCHEMA_VERSION,
        "engine_version": version,
        "judged_as": known_as,
        "accepted": _exit_code(problems) != EXIT_INPUT,
        "problems": [attrs.asdict(problem) for problem in problems],
    }
    click.echo(json.dumps(document, indent=2))


def _print_lines(problems: tuple[Problem, ...], version: str) -> None:
    for problem in problems:
        click.echo(f"{problem.severity.value}  {problem.line}")
    if not problems:
        click.echo(f"scx_layered {version} would take it as it is written")
