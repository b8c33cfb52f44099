"""The input of ``temper plan`` and ``temper explain``, and the plan that is made from it."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import frozen

from temper_core.suggestions import did_you_mean
from temper_core.visible_text import printable

if TYPE_CHECKING:
    from temper_core.decide.decider import Decider
    from temper_core.plan import ProfileCatalogue
    from temper_core.plugin_host import PluginHost
    from temper_core.records.machine import MachineShape
    from temper_core.records.plans import LayerPlan
    from temper_core.records.pods import Pod
    from temper_core.settings import Settings

PIPED_WIDTH = 200
MOST_NAMES = 5
# Text inside a string, such as an annotation, does not match: JSON escapes its quotes, and a YAML
# string does not begin a line with the key.
NODE_IN_JSON = re.compile(r'"nodeName"\s*:\s*"([\w.-]+)"')
NODE_IN_YAML = re.compile(r"""^[ -]*nodeName *: *["']?([\w.-]+)""", re.MULTILINE)


@frozen
class PlanInput:
    """The files of a plan. The default machine is this one, the default node the settings'.

    Without a file of *pods* they are those of this node, from the pod source of the settings.
    """

    pods: str | None
    machine: Path | None = None
    settings: Path | None = None
    profiles: Path | None = None
    node: str | None = None


def input_options(without_pods: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that make a PlanInput. *without_pods* is what stands in for --pods."""
    file = click.Path(path_type=Path)
    options = (
        click.option(
            "--pods",
            metavar="FILE|-",
            help="A PodList, JSON or YAML, as 'kubectl get pods -A -o json' prints it; without it, "
            f"{without_pods}.",
        ),
        click.option("--machine", type=file, help="Machine file; without it, this machine."),
        click.option("--settings", type=file, help="The agent's settings file (TOML)."),
        click.option("--profiles", type=file, help="Directory of profile files."),
        click.option("--node", help="Plan the pods of this node only; without it, the settings'."),
    )

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@frozen
class PlanningInputs:
    """The parsed input of a plan, with a decider for it."""

    pods: "tuple[Pod, ...]"
    machine: "MachineShape"
    settings: "Settings"
    decider: "Decider"


def make_plan(inputs: PlanInput, *, steered: bool = False) -> "tuple[LayerPlan, Settings]":
    """Return the plan that the agent would decide on, and the settings. Raises as ``prepare``."""
    ready = prepare(inputs)
    return ready.decider.decide(ready.pods, steered=steered).wanted, ready.settings


def prepare(inputs: PlanInput) -> PlanningInputs:
    """Read the files of a plan.

    Warns on stderr of profiles that could not be read, and of pods of several nodes.

    Raises DocumentError for files with errors, MachineError if this machine's shape is needed and
    cannot be read.
    """
    from temper_core.decide.decider import Decider
    from temper_core.plugin_host import load_host
    from temper_core.profiles.loading import load_catalogue
    from temper_core.settings import load

    _require_pods_for_options(inputs)
    settings = load(inputs.settings).settings
    given = None if inputs.pods is None else _pods(inputs.pods, inputs.node or settings.node)
    machine = _machine(inputs.machine)
    _require_directory(inputs.profiles)
    host = load_host(settings, extra=_pod_sources() if given is None else {})
    pods = _pods_of_node(host, settings, machine) if given is None else given
    catalogue = load_catalogue(settings, host, inputs.profiles)
    _tell_failures(catalogue)
    return PlanningInputs(pods, machine, settings, Decider(settings, machine, host, catalogue))


def node_names(text: str) -> tuple[str, ...]:
    """Return the names of the nodes to which a PodList binds pods, sorted; JSON or YAML.

    It searches the text: to parse a large list a second time for the count would take longer.
    """
    is_json = text.lstrip("\ufeff \t\r\n").startswith(("{", "["))
    names = (NODE_IN_JSON if is_json else NODE_IN_YAML).findall(text)
    return tuple(sorted({*names} - {"null"}))


def cpus_text(low: int | None, high: int | None) -> str:
    """Write a layer's size in CPUs."""
    if high is None:
        return "none"
    return str(high) if low == high else f"{low}-{high}"


def _pods(file: str, node: str) -> "tuple[Pod, ...]":
    from temper_core.node.podlist import read_pods

    text = _text(file)
    pods = read_pods(
        text,
        source=file,
        node=node or None,
        report=lambda conflict: click.echo(f"temper: {file}: {printable(conflict)}", err=True),
    )
    _tell_nodes(file, node_names(text), node)
    return pods


def _tell_nodes(file: str, names: tuple[str, ...], node: str) -> None:
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    if node and names and node not in names:
        there = f"there are {shown}{did_you_mean(node, names)}"
        click.echo(f"temper: {file}: no pod is on node {node!r}; {there}", err=True)
    elif not node and len(names) > 1:
        problem = f"has pods of {len(names)} nodes ({shown}), planned as if on one"
        click.echo(f"temper: {file}: {problem}; choose one with --node NAME", err=True)


def _require_pods_for_options(inputs: PlanInput) -> None:
    for option, value in (("--machine", inputs.machine), ("--node", inputs.node)):
        if inputs.pods is None and value is not None:
            raise click.UsageError(f"{option} needs --pods: without it, this node is planned")


def _pod_sources() -> Mapping[str, object]:
    """Return the plugin of the core's own pod sources, which needs Linux."""
    from temper_core.node import builtin_plugin

    return {builtin_plugin.NAME: builtin_plugin}


def _pods_of_node(
    host: "PluginHost", settings: "Settings", machine: "MachineShape"
) -> "tuple[Pod, ...]":
    from temper_core.node.pod_cgroups import pods_of_node

    return pods_of_node(host, settings, machine)


def _text(file: str) -> str:
    from temper_core.documents import read_stream, read_text
    from temper_core.errors import DocumentError

    if file != "-":
        return read_text(Path(file), pipes=True)
    if sys.stdin is None:  # the shell closed it: <&-
        raise DocumentError("-", ["standard input is closed"])
    return read_stream(sys.stdin.buffer, source="-")


def _machine(file: Path | None) -> "MachineShape":
    if file is not None:
        from temper_core.node.machine_file import read_machine_file

        return read_machine_file(file)
    from temper_core.node.topology import read_machine

    return read_machine()


def _require_directory(directory: Path | None) -> None:
    from temper_core.errors import DocumentError

    try:
        is_missing = directory is not None and not directory.is_dir()
    except OSError as error:  # a directory above it that this user may not enter
        raise DocumentError(str(directory), [error.strerror or str(error)]) from error
    if is_missing:
        raise DocumentError(str(directory), ["is not a directory of profiles"])


def _tell_failures(catalogue: "ProfileCatalogue") -> None:
    for failure in catalogue.failures:
        profile = f" (profile {failure.profile!r})" if failure.profile else ""
        click.echo(f"temper: {failure.source}{profile}: {failure.reason}", err=True)
