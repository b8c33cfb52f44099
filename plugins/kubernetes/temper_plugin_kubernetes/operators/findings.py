"""What ``temper k8s doctor`` finds: one record each, with what to do about it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from attrs import evolve, field, frozen

from temper_core.console import named
from temper_kube.failures import ForbiddenError, NotFoundError, RefusalError


class FindingSeverity(StrEnum):
    """How bad it is: an error keeps Temper from working, a warning may hurt, a note is to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@frozen
class Finding:
    """One thing that is not as it should be. ``nodes`` are those it is true of, if it is of any."""

    check: str
    severity: FindingSeverity
    detail: str
    remedy: str
    nodes: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The detail with the nodes, the first few by name."""
        if not self.nodes:
            return self.detail
        count = f"{len(self.nodes)} nodes" if len(self.nodes) > 1 else "1 node"
        return f"{self.detail} ({count}: {named(self.nodes)})"


def error(check: str, detail: str, remedy: str, nodes: Sequence[str] = ()) -> Finding:
    """Say what keeps Temper from working."""
    return Finding(check, FindingSeverity.ERROR, detail, remedy, tuple(nodes))


def warning(check: str, detail: str, remedy: str, nodes: Sequence[str] = ()) -> Finding:
    """Say what may hurt."""
    return Finding(check, FindingSeverity.WARNING, detail, remedy, tuple(nodes))


def note(check: str, detail: str, remedy: str, nodes: Sequence[str] = ()) -> Finding:
    """Say what is good to know."""
    return Finding(check, FindingSeverity.NOTE, detail, remedy, tuple(nodes))


@frozen
class Unknown:
    """Something that could not be looked at, and why."""

    what: str
    why: str


@frozen
class Report:
    """All findings, the worst first, and what could not be looked at."""

    findings: tuple[Finding, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    checks: tuple[str, ...] = field(default=())

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to be done."""
        return all(each.severity is FindingSeverity.NOTE for each in self.findings)


Check = Callable[[], Iterable[Finding]]


def run_checks(checks: Iterable[tuple[str, Check]]) -> Iterator[tuple[Finding, ...] | Unknown]:
    """Run each check. One that may not look is unknown, and keeps no other from being run.

    Raises MachineError where there is no API server.
    """
    for what, check in checks:
        try:
            yield tuple(check())
        except (ForbiddenError, NotFoundError, RefusalError) as problem:
            yield Unknown(what, str(problem))


def _joined(found: Iterable[Finding]) -> list[Finding]:
    """Make one of those that say the same of several nodes: a fleet has thousands."""
    joined: dict[Finding, list[str]] = {}
    for each in found:
        joined.setdefault(evolve(each, nodes=()), []).extend(each.nodes)
    return [evolve(each, nodes=tuple(sorted(set(nodes)))) for each, nodes in joined.items()]


def report_of(checks: Sequence[tuple[str, Check]], known: Sequence[Unknown] = ()) -> Report:
    """Run the checks and put their findings in order."""
    found: list[Finding] = []
    unknown = list(known)
    for answer in run_checks(checks):
        if isinstance(answer, Unknown):
            unknown.append(answer)
        else:
            found += answer
    found = _joined(found)
    order = list(FindingSeverity)
    found.sort(key=lambda each: (order.index(each.severity), each.check, each.nodes))
    return Report(tuple(found), tuple(unknown), tuple(what for what, _ in checks))
