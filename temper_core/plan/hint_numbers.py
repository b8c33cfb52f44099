"""The hint of each layer: a number that stays with its name from plan to plan."""

from collections.abc import Iterable, Mapping

from temper_core.errors import PlanError
from temper_core.records.steering import FIRST_GROUP_HINT, FIXED_HINTS, LARGEST_HINT


def hints_for(names: Iterable[str], known: Mapping[str, int] = FIXED_HINTS) -> dict[str, int]:
    """Return the hints of layers *names*: the *known* ones, and new numbers for the others.

    Numbers of removed layers are used again only if all others are in use, because old numbers may
    still be in the map. If two known layers have one number, the first keeps it. Raises PlanError
    if there are more layers than numbers.
    """
    layers = dict.fromkeys(names)
    known = {**FIXED_HINTS, **known, **FIXED_HINTS}
    owners = {number: name for name, number in reversed(known.items()) if name in layers}
    hints = {name: known[name] for name in layers if name in known and owners[known[name]] == name}
    fresh = max([FIRST_GROUP_HINT - 1, *known.values()]) + 1
    spare = iter(sorted({*range(FIRST_GROUP_HINT, LARGEST_HINT)} - {*hints.values()}))
    for name in layers:
        if name not in hints:
            number = fresh if fresh < LARGEST_HINT else next(spare, None)
            if number is None:
                raise PlanError("plan", [f"there is no hint left for layer {name!r}"])
            hints[name] = number
            fresh += 1
    return hints
