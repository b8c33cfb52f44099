"""The objects that views show: of a file, or of the cluster that a kubeconfig names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import frozen

from temper_core import DocumentError, MachineError, Pod, read_pod_object
from temper_core.console import printable
from temper_plugin_power.commands.object_files import read_objects
from temper_plugin_power.resources.definitions import GROUP, VERSION

Object = Mapping[str, Any]
Command = TypeVar("Command", bound=Callable[..., Any])
PATHS = {
    "WorkloadProfile": f"/apis/{GROUP}/{VERSION}/workloadprofiles",
    "NodeTwin": f"/apis/{GROUP}/{VERSION}/nodetwins",
    "Pod": "/api/v1/pods",
}


@frozen
class Source:
    """The source of objects: a file, or the cluster of a kubeconfig."""

    objects: Path | None
    kubeconfig: Path | None
    context: str

    def read(self, *kinds: str) -> list[Object]:
        """Return the objects, of the cluster those of some *kinds*.

        Raises DocumentError for an invalid file, MachineError without an API server or a right.
        Pods that may not be listed are reported and left out.
        """
        if self.objects is not None:
            return [each for each in read_objects(self.objects) if isinstance(each, Mapping)]
        from temper_kube.api_server import ApiServer  # noqa: PLC0415 - slow
        from temper_kube.kubeconfig import find_access  # noqa: PLC0415 - the same

        with ApiServer(find_access(str(self.kubeconfig or ""), self.context)) as api:
            return [each for kind in kinds for each in _listed(api, kind)]


def _listed(api: Any, kind: str) -> Iterator[Object]:  # noqa: ANN401 - an ApiServer
    try:
        # An item of a list has no kind of its own.
        yield from ({**each, "kind": kind} for each in api.list(PATHS[kind]))
    except MachineError as error:
        if kind != "Pod":
            raise
        click.echo(printable(f"tiers are not checked: {error}"), err=True)


def source_options(command: Command) -> Command:
    """Add the options of a ``Source``."""
    for option in (
        click.option("--context", default="", help="A context of it, not the current one."),
        click.option(
            "--kubeconfig",
            type=click.Path(path_type=Path),
            help="A kubeconfig. Default: $KUBECONFIG, the pod's own account, or ~/.kube/config.",
        ),
        click.option(
            "--objects",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A List of objects instead of a cluster; - is standard input.",
        ),
    ):
        command = option(command)
    return command


def pods_of(objects: Sequence[Object]) -> list[Pod]:
    """Return the pods among *objects* that have not ended. An invalid one is left out."""
    pods = []
    for each in objects:
        if each.get("kind") == "Pod":
            try:
                pod = read_pod_object(each, source="a pod")
            except DocumentError:
                continue
            if pod is not None:
                pods.append(pod)
    return pods


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)
