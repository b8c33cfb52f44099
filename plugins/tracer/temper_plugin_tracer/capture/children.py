"""Child processes of a capture's helper."""

from collections.abc import Iterable


def end_with_parent() -> None:
    """Do nothing, as ``preexec_fn``: the launcher of helpers has children of fork end with it."""


def last_line(lines: Iterable[str]) -> str:
    """Return the last line that says something, after a colon. Empty without one."""
    messages = [" ".join(line.split()) for line in lines if line.strip()]
    return f": {messages[-1][:300]}" if messages else ""
