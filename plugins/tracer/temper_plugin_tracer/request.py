"""The body of ``PUT /wakes``: the duration of watching."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from attrs.validators import ge, le

from temper_core import fit_body

SOURCE = "wakes request"
USUAL_S = 60.0
LONGEST_S = 3_600.0
SCHEMA: Mapping[str, Any] = {
    "title": "WakesRequest",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "seconds": {"type": "number", "minimum": 1, "maximum": LONGEST_S, "default": USUAL_S},
    },
}


@frozen
class WakesRequest:
    """A request to watch wake-ups for ``seconds``."""

    seconds: float = field(default=USUAL_S, validator=[ge(1.0), le(LONGEST_S)])


def parse_wakes_request(body: Any) -> WakesRequest:  # noqa: ANN401 - JSON
    """Read a request's *body*, which may be empty. Raise InputError if it is invalid."""
    return fit_body(body, WakesRequest, source=SOURCE, example='{"seconds": 60}')
