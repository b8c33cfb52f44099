"""``temper engine``: check configurations of the engine."""

import sys
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

from temper_core.console import FiniteRange, output_option, print_json
from temper_core.engine.problems import Problem, ProblemSeverity
from temper_core.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INPUT

if TYPE_CHECKING:
    from temper_core.engine.binary import EngineBinary
    from temper_core.engine.capabilities import Capabilities
    from temper_core.engine.dry_run import DryRun

VERIFY_S = 30.0
LOAD_S = 300.0
SCHEMA_VERSION = 1


@click.group("engine")
def command() -> None:
    """Check a configuration of the engine, scx_layered."""


@command.command("check")
@click.argument("file", metavar="FILE|-", required=False)
@click.option("--engine-version", metavar="VERSION", help="What `scx_layered --version` prints.")
@click.option("--cpus", type=click.IntRange(min=1), help="How many CPUs the engine will find.")
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="OPTION",
    help="An option the engine is started with, such as --argument=--task-hint-map=PATH.",
)
@click.option(
    "--binary",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Check with the engine itself too: PATH, or the binary that [scheduler] engine names.",
)
@click.option(
    "--load",
    is_flag=True,
    help="With --binary: load it into this kernel as well, without attaching.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0.1, max=86_400),
    metavar="SECONDS",
    help="How long the engine may take: 30, and 300 with --load.",
)
@output_option
@click.pass_context
def check_command(
    context: click.Context,
    /,
    file: str | None,
    output: str,
    **options: Any,  # noqa: ANN401 - those of _Asked
) -> None:
    """Check whether scx_layered would take the configuration in FILE.

    With --binary the engine itself checks it too, after Temper's own rules: it reads and verifies
    the configuration, and attaches nothing. If the kernel has sched_ext, it only reads it. With
    --load it also loads, behind a gate that is never opened. That takes root and a minute.

    Exit code 2 if the engine would refuse the configuration, crash on it or be ejected for it, or
    if the binary refuses it. 1 if the engine would silently ignore or misread a part of it. 3 if
    the engine cannot run here. 0 otherwise.
    """
    request = _Asked(**options)
    if file is None:
        raise click.UsageError(request.why_no_file)
    request.ensure_sense()
    engine = None if request.binary is None else _find(request.binary)
    text = _read(file)
    verdict = _judge(text, request, engine)
    if engine is not None:
        verdict = evolve(verdict, rehearsal=_rehearse(text, request, engine))
    if verdict.capabilities.assumed:
        click.echo(verdict.capabilities.assumption, err=True)
    if output == "json":
        _print_json(verdict)
    else:
        _print_lines(verdict)
    context.exit(verdict.exit_code)


@frozen
class _Asked:
    """The options of ``engine check``, by the names click gives them."""

    engine_version: str | None
    cpus: int | None
    arguments: tuple[str, ...]
    binary: str | None
    load: bool
    timeout_s: float | None

    @property
    def why_no_file(self) -> str:
        """The error for a missing FILE, with a hint if --binary took it for the engine's path."""
        missing = "Missing argument 'FILE|-'."
        if not self.binary:
            return missing
        return f"{missing} --binary took {self.binary!r} for the engine: give FILE before --binary."

    def ensure_sense(self) -> None:
        """Raise UsageError where options contradict each other."""
        if self.binary is None and (self.load or self.timeout_s is not None):
            raise click.UsageError("--load and --timeout need --binary")
        if self.binary is not None and self.engine_version is not None:
            raise click.UsageError("--binary knows its version: leave --engine-version out")


@frozen
class _Judged:
    """The verdict of the rules on a configuration, and of the engine if it was run."""

    problems: tuple[Problem, ...]
    capabilities: "Capabilities"
    engine: "EngineBinary | None" = None
    rehearsal: "DryRun | None" = None

    @property
    def exit_code(self) -> int:
        is_refused = any(problem.severity is ProblemSeverity.REFUSED for problem in self.problems)
        if is_refused or (self.rehearsal is not None and not self.rehearsal.is_taken):
            return EXIT_INPUT
        return EXIT_FINDINGS if self.problems else EXIT_CLEAN


def _find(name: str) -> "EngineBinary":
    from temper_core.engine.binary import find_engine
    from temper_core.settings import load

    return find_engine(name or load(None).settings.scheduler.engine)


def _judge(text: str, request: _Asked, engine: "EngineBinary | None") -> _Judged:
    """Check *text* by Temper's own rules."""
    from temper_core.engine.capabilities import capabilities_of
    from temper_core.engine.configuration_check import check
    from temper_core.engine.dry_run import with_hint_map

    capabilities = capabilities_of(request.engine_version if engine is None else engine.version)
    options = request.arguments if engine is None else with_hint_map(text, request.arguments)
    problems = check(text, capabilities, arguments=options, cpus=request.cpus)
    return _Judged(problems, capabilities, engine)


def _rehearse(text: str, request: _Asked, engine: "EngineBinary") -> "DryRun":
    """Check *text* with the engine itself."""
    if not request.load:
        from temper_core.engine.dry_run import rehearse

        return rehearse(engine, text, request.arguments, timeout_s=request.timeout_s or VERIFY_S)
    from temper_core.scheduler.engine_process.load_trial import load_once

    return load_once(engine.path, text, request.arguments, timeout_s=request.timeout_s or LOAD_S)


def _read(file: str) -> str:
    from pathlib import Path

    from temper_core.documents import read_stream, read_text

    if file != "-":
        return read_text(Path(file), pipes=True)
    return read_stream(sys.stdin.buffer, source="-")


def _print_json(verdict: _Judged) -> None:
    import attrs

    document = {
        "schema_version": SCHEMA_VERSION,
        "engine_version": verdict.capabilities.version,
        "judged_as": verdict.capabilities.known_as,
        "accepted": verdict.exit_code != EXIT_INPUT,
        "problems": [attrs.asdict(problem) for problem in verdict.problems],
    }
    if verdict.engine is not None and verdict.rehearsal is not None:
        document["engine"] = {
            "path": str(verdict.engine.path),
            "stage": verdict.rehearsal.stage.value,
            "taken": verdict.rehearsal.is_taken,
            "said": verdict.rehearsal.said,
        }
    print_json(document)


def _print_lines(verdict: _Judged) -> None:
    for problem in verdict.problems:
        click.echo(f"{problem.severity.value}  {problem.line}")
    version = verdict.capabilities.version
    if verdict.rehearsal is not None:
        prefix = f"scx_layered {version}: " if verdict.rehearsal.is_taken else ""
        click.echo(f"{prefix}{verdict.rehearsal.line}")
    elif not verdict.problems:
        click.echo(f"scx_layered {version} would take it as it is written")
