"""The result of one check of ``temper doctor``: its state and remedy."""

from enum import StrEnum

from attrs import frozen


class CheckState(StrEnum):
    """The result of a check. UNKNOWN if the machine could not be inspected."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@frozen
class Check:
    """One requirement of the machine, its state, and its remedy."""

    name: str
    state: CheckState
    detail: str
    remedy: str = ""


def ok(name: str, detail: str) -> Check:
    """Return that *name* holds."""
    return Check(name, CheckState.OK, detail)


def warning(name: str, detail: str, remedy: str) -> Check:
    """Return that *name* does not prevent the engine's start, but may do harm."""
    return Check(name, CheckState.WARNING, detail, remedy)


def failed(name: str, detail: str, remedy: str) -> Check:
    """Return that the engine must not be started because of *name*."""
    return Check(name, CheckState.FAILED, detail, remedy)


def unknown(name: str, detail: str, remedy: str = "") -> Check:
    """Return that *name* could not be inspected. It does not prevent the engine's start."""
    return Check(name, CheckState.UNKNOWN, detail, remedy)
