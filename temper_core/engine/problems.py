"""The findings of a configuration check."""

from enum import StrEnum

from attrs import frozen


class ProblemSeverity(StrEnum):
    """The engine's reaction to a fault."""

    REFUSED = "refused"
    IGNORED = "ignored"


@frozen
class Problem:
    """One fault of a configuration.

    ``refused``: the engine would refuse it, crash on it, or be ejected by the kernel because of
    it. ``ignored``: the engine accepts it, and silently ignores or misreads it. ``where`` is the
    layer and the path inside it.
    """

    severity: ProblemSeverity
    where: str
    message: str

    @property
    def line(self) -> str:
        """The fault as one line for people."""
        return f"{self.where}: {self.message}"


def refused(where: str, message: str) -> Problem:
    """Return a fault that the engine would refuse, crash on or be ejected for."""
    return Problem(ProblemSeverity.REFUSED, where, message)


def ignored(where: str, message: str) -> Problem:
    """Return a fault at *where* that the engine would silently ignore or misread."""
    return Problem(ProblemSeverity.IGNORED, where, message)
