"""What ``temper plan`` and ``temper explain`` share: their input, and the plan made of it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

if TYPE_CHECKING:
    from rich.console import Console

    from temper_core.plan import ProfileCatalogue
    from temper_core.records.machine import MachineShape
    from temper_core.records.plans import LayerPlan
    from temper_core.records.pods import Pod
    from temper_core.settings import Settings

PIPED_WIDTH = 200


@frozen
class PlanInput:
    """The files a plan is made from; no machine file means this machine."""

    pods: str
    machine: Path | None
    settings: Path | None
    profiles: Path | None


def input_options(*, pods_required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that name the files of a PlanInput."""
    file = click.Path(path_type=Path)
    options = (
        click.option(
            "--pods",
            metavar="FILE|-",
            required=pods_required,
            help="A PodList, JSON or YAML, as 'kubectl get pods -A -o json' prints it.",
        ),
        click.option("--machine", type=file, help="Machine file; without it, this machine."),
        click.option("--settings", type=file, help="The agent's settings file (TOML)."),
        click.option("--profiles", type=file, help="Directory of profile files."),
    )

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def make_plan(given: PlanInput) -> "tuple[LayerPlan, Settings]":
    """Decide as the agent does, from files; warn on stderr of profiles that could not be read.

    Raises DocumentError for files that do not fit, MachineError where this machine's shape is
    wanted and cannot be read.
    """
    from temper_core.agent.decider import Decider
    from temper_core.agent.profiles import load_catalogue
    from temper_core.plugin_host import load_host
    from temper_core.settings import load

    settings = load(given.settings).settings
    pods, machine = _pods(given.pods), _machine(given.machine)
    _require_directory(given.profiles)
    host = load_host(settings)
    catalogue = load_catalogue(settings, host, given.profiles)
    _tell_failures(catalogue)
    return Decider(settings, machine, host, catalogue).decide(pods), settings


def wide_console() -> "Console":
    """Return a console that does not fold lines where a program reads them."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    if console.is_terminal:
        return console
    return Console(markup=False, highlight=False, width=PIPED_WIDTH)


def plain_table(*columns: str) -> Any:  # noqa: ANN401 - rich is imported when it is needed
    """Return a table without lines."""
    from rich.table import Table

    return Table(*columns, box=None, pad_edge=False)


def cpus_text(low: int | None, high: int | None) -> str:
    """Write a layer's size in CPUs."""
    if high is None:
        return "none"
    return str(high) if low == high else f"{low}-{high}"


def _pods(file: str) -> "tuple[Pod, ...]":
    from temper_core.node.podlist import read_pods

    return read_pods(_text(file), source=file)


def _text(file: str) -> str:
    from temper_core.documents import read_stream, read_text

    if file != "-":
        return read_text(Path(file), pipes=True)
    return read_stream(sys.stdin.buffer, source="-")


def _machine(file: Path | None) -> "MachineShape":
    if file is not None:
        from temper_core.node.machine_file import read_machine_file

        return read_machine_file(file)
    from temper_core.node.topology import read_machine

    return read_machine()


def _require_directory(directory: Path | None) -> None:
    from temper_core.errors import DocumentError

    if directory is not None and not directory.is_dir():
        raise DocumentError(str(directory), ["is not a directory of profiles"])


def _tell_failures(catalogue: "ProfileCatalogue") -> None:
    for failure in catalogue.failures:
        named = f" (profile {failure.profile!r})" if failure.profile else ""
        click.echo(f"temper: {failure.source}{named}: {failure.reason}", err=True)
