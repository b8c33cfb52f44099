"""The annotation that keeps what a workload requested before advice was applied."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, evolve, field, frozen

from temper_core import DocumentError, InputError, cpu_millis, fit, memory_bytes
from temper_core.console import Row
from temper_core.observed import table, text
from temper_plugin_rightsizer.changes import PLACES, Amounts, ContainerChange

KEY = "temper.codes/rightsized"
PAIRS = (("requests.cpu", "limits.cpu"), ("requests.memory", "limits.memory"))
"""The places of a request and of the limit that it may not exceed."""
LONGEST_AMOUNT = 100
"""How many characters of an amount are kept. The API server takes a million leading zeros."""


@frozen
class _Record:
    changes: tuple[ContainerChange, ...] = field(factory=tuple)


def recorded(item: Row) -> tuple[ContainerChange, ...]:
    """Return what was applied to the object *item* and not undone. Raise InputError.

    A user with the right to write the object may write its annotation. So it is checked like any
    input.
    """
    content = text(table(table(item, "metadata"), "annotations"), KEY)
    if not content:
        return ()
    try:
        record = fit({"changes": json.loads(content)}, _Record, source=f"annotation {KEY}")
    except (ValueError, RecursionError) as error:
        raise InputError(f"annotation {KEY}: not JSON: {error}") from error
    except DocumentError as error:
        raise InputError(str(error.lines[0])) from error
    for change in record.changes:
        _check(change)
    if len({(change.key, change.container) for change in record.changes}) < len(record.changes):
        raise InputError(f"annotation {KEY}: a container is there more than once")
    return record.changes


def as_annotation(changes: Iterable[ContainerChange]) -> str:
    """Return *changes* as the value of the annotation."""
    return json.dumps([asdict(change) for change in changes], separators=(",", ":"))


def standing(change: ContainerChange, present: Amounts) -> ContainerChange:
    """Return what of the recorded *change* is still there in a container. Raise InputError.

    *present* has the amounts of all places. One that was not applied has been set by somebody else
    since, and is not Temper's to take back. Nor is the other one of its pair, if a request would
    come back above its limit.
    """
    places = {
        place for place, amount in change.after.items() if is_same(place, amount, present[place])
    }
    undone = {**present, **{place: change.before[place] for place in places}}
    for request, limit in PAIRS:
        if _is_crossed(undone, request, limit):
            places -= {request, limit}
    before, after = (
        {place: amount for place, amount in amounts.items() if place in places}
        for amounts in (change.before, change.after)
    )
    return evolve(change, before=before, after=after)


def merged(
    old: Iterable[ContainerChange], new: Iterable[ContainerChange]
) -> tuple[ContainerChange, ...]:
    """Return the record after *new* is applied on top of *old*: the first amounts are kept."""
    known = {(change.key, change.container): change for change in old}
    for change in new:
        first = known.get((change.key, change.container), change)
        known[change.key, change.container] = ContainerChange(
            change.container,
            change.is_init,
            {**change.before, **first.before},
            {**first.after, **change.after},
        )
    return tuple(known.values())


def is_same(place: str, one: str | None, other: str | None) -> bool:
    """Return whether two amounts are equal, however they are spelled. Raise InputError."""
    if one is None or other is None:
        return one is other
    return _value(place, one) == _value(place, other)


def _is_crossed(amounts: Amounts, request: str, limit: str) -> bool:
    """Return whether a request is above its limit, which no API server accepts."""
    least, most = amounts[request], amounts[limit]
    if least is None or most is None:
        return False
    return _value(request, least) > _value(limit, most)


def _value(place: str, amount: str) -> int:
    if len(amount) > LONGEST_AMOUNT:
        raise InputError(f"{place} is an amount of more than {LONGEST_AMOUNT} characters")
    return cpu_millis(amount) if place.endswith("cpu") else memory_bytes(amount)


def _check(change: ContainerChange) -> None:
    """Raise InputError unless the amounts are quantities of one set of places."""
    before: Mapping[str, Any] = change.before
    if before.keys() != change.after.keys() or not before.keys() <= PLACES:
        raise InputError(
            f"annotation {KEY}: container {change.container!r}: before and after must have the "
            f"same keys, of {', '.join(sorted(PLACES))}"
        )
    for place, amount in (*change.before.items(), *change.after.items()):
        try:
            is_same(place, amount, amount)
        except InputError as error:
            raise InputError(
                f"annotation {KEY}: container {change.container!r}: {place}: {error}"
            ) from error
