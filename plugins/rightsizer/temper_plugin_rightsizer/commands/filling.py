"""``temper rightsize backfill``: give the node's agent the history that a Prometheus has."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from temper_core import InputError, MachineError, ask_agent
from temper_core.console import (
    Progress,
    Row,
    bounded_memory,
    output_option,
    print_json,
    read_settings,
    settings_option,
    shown,
)
from temper_core.observed import count, rows, text
from temper_plugin_rightsizer.commands.fleet import FleetQuestion, asked_fleet, fleet_options
from temper_plugin_rightsizer.options import HOURS_OF_DAY, MOST_DAYS
from temper_prometheus.durations import HOUR_S

if TYPE_CHECKING:
    from temper_plugin_rightsizer.backtest.samples import Place

SCHEMA_VERSION = 1
USUAL_DAYS = 2
BATCH_BYTES = 128 * 1024
"""Of one request. A plugin's endpoint has 5 s, also on a busy node."""
PATH = "/rightsize/history"
Names = tuple[str, str, str]
"""Namespace, pod and container."""


@click.command("backfill")
@click.option(
    "--days",
    type=click.IntRange(1, MOST_DAYS),
    default=USUAL_DAYS,
    show_default=True,
    help="Fill in so many days.",
)
@fleet_options
@settings_option
@output_option
def command(*, days: int, fleet: FleetQuestion, settings_path: Path | None, output: str) -> None:
    """Fill in the history of this node's containers from a Prometheus.

    The agent keeps its own measurements: only hours before them are added, so that the command can
    be run again. A Prometheus knows threads only where agents have exported them. The request needs
    the agent's socket or its token.
    """
    if fleet.url is None:
        raise InputError("backfill needs --prometheus")
    containers = _containers(settings_path)
    wanted = [names for names in containers if not fleet.namespaces or names[0] in fleet.namespaces]
    if not wanted:
        where = f" in {', '.join(map(shown, fleet.namespaces))}" if fleet.namespaces else ""
        raise MachineError(f"the agent has measured no container of a pod{where} yet")
    with bounded_memory("the demand takes"):
        hours = _hours(fleet, days, wanted)
    answers = list(_sent(hours, settings_path))
    document = {
        "schema_version": SCHEMA_VERSION,
        "containers": len({_names(hour) for hour in hours}),
        "hours": len(hours),
        **{name: sum(count(each, name) or 0 for each in answers) for name in ("kept", "left_out")},
    }
    if output == "json":
        print_json(document)
    else:
        click.echo(_line(document))


def _line(document: Mapping[str, int]) -> str:
    found = f"{document['hours']} hours of {document['containers']} containers were found"
    return (
        f"{found}: {document['kept']} were filled in, {document['left_out']} are in the history "
        "already, or after it"
    )


def _names(row: Row) -> Names:
    return text(row, "namespace"), text(row, "pod"), text(row, "container")


def _containers(settings_path: Path | None) -> Sequence[Names]:
    """Return the containers of pods that the agent has measured within the last hour."""
    document = ask_agent("/rightsize", {"hours": "1"}, settings=read_settings(settings_path))
    return [_names(row) for row in rows(document, "containers") if text(row, "namespace")]


def _hours(fleet: FleetQuestion, days: int, wanted: Sequence[Names]) -> Sequence[Row]:
    """Return the hours of the *wanted* containers, the newest first."""
    from temper_plugin_rightsizer.backtest.fleet_demands import (  # noqa: PLC0415 - slow
        demands_of_fleet,
    )
    from temper_plugin_rightsizer.node.filling import as_row  # noqa: PLC0415 - slow

    namespaces = tuple(sorted({namespace for namespace, _, _ in wanted}))
    pods = tuple(sorted({pod for _, pod, _ in wanted}))
    question = evolve(fleet, namespaces=namespaces)
    with asked_fleet(question, days * HOURS_OF_DAY, pods) as reader:
        demands = demands_of_fleet(
            reader, lambda each: f"{each.namespace}/{each.pod}/{each.container}"
        )
    known = {"/".join(names): names for names in wanted}
    over = reader.window.at(0), reader.window.end - HOUR_S
    return [
        as_row(*known[name], at, demand)
        for (name, _, at), demand in sorted(demands.items(), key=_begin, reverse=True)
        if name in known and over[0] <= at <= over[1] and demand.seconds
    ]


def _begin(item: tuple["Place", object]) -> int:
    return item[0][2]


def _sent(hours: Sequence[Row], settings_path: Path | None) -> Iterator[Row]:
    """Send the hours to the agent, some at a time. Yield its answers."""
    settings, progress, sent = read_settings(settings_path), Progress(), 0
    for batch in _batches(hours):
        answer: Any = ask_agent(PATH, method="POST", body={"hours": batch}, settings=settings)
        if not isinstance(answer, Mapping):
            raise MachineError(f"the agent's answer to {PATH} is no object")
        yield answer
        sent += len(batch)
        progress.show(f"{sent} of {len(hours)} hours sent")
    progress.end(f"{sent} hours sent")


def _batches(hours: Sequence[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for hour in hours:
        length = len(json.dumps(hour))
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(hour)
        size += length
    if batch:
        yield batch
