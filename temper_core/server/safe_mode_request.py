"""What is asked with ``PUT /safe-mode``: by whom, whether, and why."""

import re
from typing import Any

from attrs import field, frozen

from temper_core import documents
from temper_core.errors import DocumentError, InputError

SOURCE = "safe-mode request"
LONGEST_REASON = 200
FILE_REQUESTER = "file"
_REQUESTER = re.compile(r"[A-Za-z0-9._@:-]{1,64}")


def _is_requester(_: object, __: object, value: str) -> None:
    if not _REQUESTER.fullmatch(value):
        raise ValueError(
            f"must be 1 to 64 letters, digits or any of '._@:-', not {value[:LONGEST_REASON]!r}"
        )


def _is_reason(_: object, __: object, value: str) -> None:
    if len(value) > LONGEST_REASON:
        raise ValueError(f"must be at most {LONGEST_REASON} characters, not {len(value)}")
    if not value.isprintable():
        raise ValueError("must be one line without control characters")


@frozen
class SafeModeRequest:
    """One requester's wish; several are remembered side by side, each under its own name."""

    requested: bool
    requester: str = field(default="", validator=_is_requester)
    reason: str = field(default="", validator=_is_reason)

    def __attrs_post_init__(self) -> None:
        if self.requested and self.requester == FILE_REQUESTER:
            raise ValueError("requester: 'file' stands for the host's own file; choose another")


def parse_safe_mode_request(body: Any, requester: str) -> SafeModeRequest:  # noqa: ANN401 - JSON
    """Read a request's *body*; raise InputError that names every field that does not fit.

    *requester* is who asks where the body names nobody.
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
