"""The body of ``PUT /safe-mode``: requested or not, requester and reason."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from temper_core import documents
from temper_core.errors import DocumentError, InputError
from temper_core.safe_mode.model import (
    FILE_REQUESTER,
    LONGEST_REASON,
    REQUESTER_PATTERN,
    require_reason,
    require_requester,
)

SOURCE = "safe-mode request"
SCHEMA: Mapping[str, Any] = {
    "title": "SafeModeRequest",
    "type": "object",
    "required": ["requested"],
    "additionalProperties": False,
    "properties": {
        "requested": {"type": "boolean"},
        "requester": {"type": "string", "pattern": f"^{REQUESTER_PATTERN}$"},
        "reason": {"type": "string", "maxLength": LONGEST_REASON},
    },
}


def _is_requester(_: object, __: object, value: str) -> None:
    require_requester(value)


def _is_reason(_: object, __: object, value: str) -> None:
    require_reason(value)


@frozen
class SafeModeRequest:
    """A request to turn safe mode on or off. Requests are kept by requester."""

    requested: bool
    requester: str = field(default="", validator=_is_requester)
    reason: str = field(default="", validator=_is_reason)

    def __attrs_post_init__(self) -> None:
        if self.requested and self.requester == FILE_REQUESTER:
            raise ValueError(
                "requester: 'file' is reserved for the host's own file; choose another"
            )


def parse_safe_mode_request(body: Any, requester: str) -> SafeModeRequest:  # noqa: ANN401 - JSON
    """Read a request's *body*. Raise InputError naming every invalid field.

    *requester* is the default if the body names none.
    """
    if not isinstance(body, dict):
        raise InputError(
            'the body must be a JSON object such as {"requested": true, "requester": "alice", '
            '"reason": "benchmark"}'
        )
    try:
        return documents.fit({"requester": requester, **body}, SafeModeRequest, source=SOURCE)
    except RecursionError as error:
        raise DocumentError(SOURCE, ["is nested too deeply"]) from error
