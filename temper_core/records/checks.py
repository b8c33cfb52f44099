"""The result of one check of ``temper doctor``: its state, and what to do about it."""

from enum import StrEnum

from attrs import frozen


class CheckState(StrEnum):
    """How a check ended; UNKNOWN where the machine did not let itself be looked at."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@frozen
class Check:
    """One thing the machine needs, how it stands, and what to do about it."""

    name: str
    state: CheckState
    detail: str
    remedy: str = ""


def ok(name: str, detail: str) -> Check:
    """Say that *name* holds."""
    return Check(name, CheckState.OK, detail)


def warning(name: str, detail: str, remedy: str) -> Check:
    """Say that *name* does not stand in the way, but may hurt."""
    return Check(name, CheckState.WARNING, detail, remedy)


def failed(name: str, detail: str, remedy: str) -> Check:
    """Say that the engine must not be started because of *name*."""
    return Check(name, CheckState.FAILED, detail, remedy)


def unknown(name: str, detail: str, remedy: str = "") -> Check:
    """Say that *name* could not be looked at. It does not stand in the way."""
    return Check(name, CheckState.UNKNOWN, detail, remedy)
