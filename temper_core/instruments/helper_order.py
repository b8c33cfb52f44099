"""The order of a helper: its function, argument and bounds."""

import json
import re
import sys
from typing import Any

from attrs import frozen

from temper_core.errors import InputError
from temper_core.records.instruments import MIB, HelperBounds

MOST_ARGUMENT_BYTES = 16 * MIB
ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@frozen
class HelperOrder:
    """An order of a helper: the function, its argument as JSON, and the bounds."""

    owner: str
    entry_point: str
    argument: str
    bounds: HelperBounds

    def text(self) -> bytes:
        """Return the order as JSON for the launcher."""
        bounds = self.bounds
        table = {
            "entry_point": self.entry_point,
            "path": [entry for entry in sys.path if entry],
            "memory_bytes": bounds.memory_bytes,
            "cpu_s": bounds.cpu_s,
            "result_bytes": bounds.result_bytes,
        }
        return f'{json.dumps(table)[:-1]}, "argument": {self.argument}}}'.encode()


def order_of(
    owner: str,
    entry_point: str,
    argument: Any,  # noqa: ANN401 - the plugin's own
    bounds: HelperBounds,
) -> HelperOrder:
    """Return an order. Raise InputError for an invalid entry point or argument."""
    if not ENTRY_POINT.fullmatch(entry_point):
        raise InputError(f"{entry_point!r} is not an entry point: package.module:function")
    try:
        text = json.dumps(argument, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the argument of a helper is not JSON: {error}") from error
    if len(text) > MOST_ARGUMENT_BYTES:
        raise InputError(
            f"the argument of a helper has {len(text)} bytes of JSON, {MOST_ARGUMENT_BYTES} at most"
        )
    return HelperOrder(owner, entry_point, text, bounds)
