"""The objects that views show: of a file, or of the cluster that a kubeconfig names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from attrs import frozen

from temper_core import MachineError
from temper_core.console import bounded_memory, printable
from temper_plugin_power.commands.object_files import read_objects
from temper_plugin_power.resources.definitions import GROUP, VERSION
from temper_plugin_power.views.nodes import NodeRow, node_row
from temper_plugin_power.views.profiles import ProfileRow, profile_row

Object = Mapping[str, Any]
Command = TypeVar("Command", bound=Callable[..., Any])
Record = TypeVar("Record")
PATHS = {
    "WorkloadProfile": f"/apis/{GROUP}/{VERSION}/workloadprofiles",
    "NodeTwin": f"/apis/{GROUP}/{VERSION}/nodetwins",
    "Pod": "/api/v1/pods",
}


class Objects(Protocol):
    """The objects of a file or of a cluster."""

    def read(self, kind: str, record_of: Callable[[Object], Record | None]) -> list[Record]:
        """Return the records of the objects of a *kind*, without None.

        Raises MachineError without an API server or a right. Pods that may not be listed are
        reported and left out.
        """


@frozen
class FileObjects:
    """The objects of a file."""

    objects: Sequence[object]

    def read(self, kind: str, record_of: Callable[[Object], Record | None]) -> list[Record]:
        """Return the records of the objects of a *kind*, without None."""
        found = (
            record_of(each)
            for each in self.objects
            if isinstance(each, Mapping) and each.get("kind") == kind
        )
        return [record for record in found if record is not None]


@frozen
class ClusterObjects:
    """The objects of a cluster, one of them in memory at a time. Tenants choose their sizes."""

    api: Any
    """An ApiServer."""

    def read(self, kind: str, record_of: Callable[[Object], Record | None]) -> list[Record]:
        """Return the records of the objects of a *kind*, without None. Raises MachineError."""
        try:
            return [each for each in self.api.read(PATHS[kind], record_of) if each is not None]
        except MachineError as error:
            if kind != "Pod":
                raise
            click.echo(printable(f"tiers are not checked: {error}"), err=True)
            return []


@frozen
class Source:
    """The source of objects: a file, or the cluster of a kubeconfig."""

    objects: Path | None
    kubeconfig: Path | None
    context: str

    @contextmanager
    def opened(self) -> Iterator[Objects]:
        """Yield the objects. The memory of the block is bounded.

        Raises DocumentError for an invalid file, MachineError without an API server.
        """
        if self.objects is not None:
            with bounded_memory("the objects take"):
                yield FileObjects(read_objects(self.objects))
            return
        from temper_kube.api_server import ApiServer  # noqa: PLC0415 - slow
        from temper_kube.bounded_answers import bounded_answers  # noqa: PLC0415 - the same
        from temper_kube.kubeconfig import find_access  # noqa: PLC0415 - the same

        access = find_access(str(self.kubeconfig or ""), self.context)
        with bounded_answers(), ApiServer(access) as api:
            yield ClusterObjects(api)


def node_rows(objects: Objects, at: datetime) -> list[NodeRow]:
    """Return the rows of the NodeTwins, by name. *at* is in UTC."""
    rows = objects.read("NodeTwin", partial(node_row, now=at))
    return sorted(rows, key=lambda row: row.node)


def profile_rows(objects: Objects) -> list[ProfileRow]:
    """Return the rows of the WorkloadProfiles, by namespace, kind and name."""
    rows = objects.read("WorkloadProfile", profile_row)
    return sorted(rows, key=lambda row: row.workload)


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


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)
