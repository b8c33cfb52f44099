"""Takes demand of the time before the agent's own history, as another source has measured it."""

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from attrs import astuple

from temper_core import InputError
from temper_core.observed import count, rows, text
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.node.collector import Collector
from temper_plugin_rightsizer.options import HOURS_OF_DAY, MOST_DAYS
from temper_plugin_rightsizer.store.history import HOUR_S, Interval
from temper_plugin_rightsizer.store.packing import DamagedError, pack, unpack

LARGEST_FILLING_BYTES = 1 << 20
Row = Mapping[str, object]
MOST_DEMAND_S = 2 * HOUR_S
"""The last step that began in an hour may end in the next."""
LARGEST_COUNTER = 1 << 50
"""Bytes, events or seconds. The sum of all hours that are kept can still be read back."""
FIELDS = ("namespace", "pod", "container", "at", "demand")
FILLING_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["hours"],
    "properties": {
        "hours": {
            "type": "array",
            "items": {
                "type": "object",
                "required": list(FIELDS),
                "properties": {
                    **{name: {"type": "string"} for name in FIELDS},
                    "at": {"type": "integer"},
                },
            },
        }
    },
}


def as_row(namespace: str, pod: str, container: str, at: int, demand: IntervalDemand) -> Row:
    """Return the *demand* in the hour from *at* on as an item of the body's ``hours``."""
    packed = b64encode(pack(demand)).decode()
    return dict(zip(FIELDS, (namespace, pod, container, at, packed), strict=True))


def fill_in(collector: Collector, content: bytes, now: float) -> Mapping[str, int]:
    """Keep the hours of the JSON in *content*. Return the numbers of those kept and left out.

    Left out are hours of a container that is not on the node, those for which the history has
    demand already, and those after it. Raises InputError for a body that does not fit, of which
    nothing is kept, and MachineError if the history cannot be written.
    """
    hours = list(_hours(content, now))
    keys = {(key.namespace, key.pod, key.container): key for key in collector.known}
    kept = collector.fill(HOUR_S, _newest_first(hours, keys))
    return {"kept": kept, "left_out": len(hours) - kept}


_Hour = tuple[tuple[str, str, str], int, IntervalDemand]


def _newest_first(
    hours: list[_Hour], keys: Mapping[tuple[str, str, str], ContainerKey]
) -> Iterator[Interval]:
    for names, at, demand in sorted(hours, key=lambda hour: hour[1], reverse=True):
        key = keys.get(names)
        if key is not None:
            yield key, at, demand


def _hours(content: bytes, now: float) -> Iterator[_Hour]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError("the body is no JSON") from error
    if not isinstance(document, dict) or not isinstance(document.get("hours"), list):
        raise InputError("the body must have a list: hours")
    found = rows(document, "hours")
    if len(found) != len(document["hours"]):
        raise InputError("hours: each must be an object")
    for number, row in enumerate(found):
        try:
            yield _hour(row, now)
        except ValueError as error:
            raise InputError(f"hours[{number}]: {error}") from error


def _hour(row: Row, now: float) -> _Hour:
    """Return one of the hours. Raises ValueError if it does not fit."""
    at, oldest = count(row, "at"), now - MOST_DAYS * HOURS_OF_DAY * HOUR_S
    if at is None or at % HOUR_S or not oldest <= at <= now - HOUR_S:
        raise ValueError(
            f"at must be the begin of an hour that is over, of the last {MOST_DAYS} days, in "
            "seconds since 1970"
        )
    try:
        demand = unpack(b64decode(text(row, "demand"), validate=True))
    except (DamagedError, binascii.Error) as error:
        raise ValueError("demand is damaged") from error
    if not 0 < demand.seconds <= MOST_DEMAND_S or demand.memory.seconds > MOST_DEMAND_S:
        raise ValueError(f"demand must be of up to {MOST_DEMAND_S} s, not {demand.seconds} s")
    if not all(map(_is_of_hours, filter(None, (demand, demand.startup)))):
        raise ValueError("demand has a counter or a time that no hours have")
    return (text(row, "namespace"), text(row, "pod"), text(row, "container")), at, demand


def _is_of_hours(demand: IntervalDemand) -> bool:
    """Whether hours can have the times and the counters of *demand*, also when they are added."""
    parts = (demand.cpu, demand.run_delay, demand.memory, *demand.ranks, *demand.rests)
    times = (demand.waits.seconds, *(part.seconds for part in parts))
    waits = (*demand.waits.ranked, *chain(*map(astuple, demand.waits.groups.values())))
    counters = (*astuple(demand.counts), *demand.names.values(), *waits)
    return max(times) <= MOST_DEMAND_S and max(counters) <= LARGEST_COUNTER
