"""What a configuration check finds."""

from enum import StrEnum

from attrs import frozen


class ProblemSeverity(StrEnum):
    """How the engine would take it."""

    REFUSED = "refused"
    IGNORED = "ignored"


@frozen
class Problem:
    """One fault of a configuration.

    ``refused``: the engine would not take it, would crash on it, or would be thrown out by the
    kernel because of it. ``ignored``: the engine takes it, and silently does something else than
    it says. ``where`` is the layer and the path inside it.
    """

    severity: ProblemSeverity
    where: str
    message: str

    @property
    def line(self) -> str:
        """The fault as people read it."""
        return f"{self.where}: {self.message}"


def refused(where: str, message: str) -> Problem:
    """Say that the engine would refuse, crash on or be ejected for *message*."""
    return Problem(ProblemSeverity.REFUSED, where, message)


def ignored(where: str, message: str) -> Problem:
    """Say that the engine would silently ignore or misread what is at *where*."""
    return Problem(ProblemSeverity.IGNORED, where, message)
