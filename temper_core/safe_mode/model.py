"""A request for safe mode: requester, reason and start, with the limits of each field."""

import re

from attrs import frozen

FILE_REQUESTER = "file"
"""The requester name of the host's file, reserved for it."""
UNREADABLE_REQUESTER = "unreadable-state"
"""The requester name of a state file that cannot be read."""
LONGEST_REQUESTER = 64
"""Characters."""
LONGEST_REASON = 500
"""Characters."""
REQUESTER_CHARACTERS = "[A-Za-z0-9._@:-]"
REQUESTER_PATTERN = f"{REQUESTER_CHARACTERS}{{1,{LONGEST_REQUESTER}}}"

_REQUESTER = re.compile(REQUESTER_PATTERN)


@frozen
class Request:
    """One active request: its reason, and its start in wall-clock seconds."""

    reason: str
    since: float


def require_requester(name: str) -> None:
    """Raise ValueError, naming the allowed characters, unless *name* is a valid requester."""
    if not _REQUESTER.fullmatch(name):
        allowed = f"1 to {LONGEST_REQUESTER} letters, digits or any of '._@:-'"
        raise ValueError(f"must be {allowed}, not {name[:LONGEST_REASON]!r}")


def require_reason(reason: str) -> None:
    """Raise ValueError unless *reason* is one printable line within the limit."""
    if len(reason) > LONGEST_REASON:
        raise ValueError(f"must be at most {LONGEST_REASON} characters, not {len(reason)}")
    if not reason.isprintable():
        raise ValueError("must be one line without control characters")
