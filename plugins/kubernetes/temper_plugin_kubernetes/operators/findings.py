"""Findings of ``temper k8s doctor``, each with a remedy."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from attrs import evolve, field, frozen

from temper_core.console import named
from temper_kube.failures import (
    MALFORMED,
    ForbiddenError,
    MalformedError,
    NotFoundError,
    RefusalError,
)


class FindingSeverity(StrEnum):
    """An error keeps Temper from working, a warning may harm it, a note is information."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@frozen
class Finding:
    """One problem with its remedy. ``nodes`` are the affected nodes, if it concerns nodes."""

    check: str
    severity: FindingSeverity
    detail: str
    remedy: str
    nodes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The detail with the nodes, the first few by name."""
        if not self.nodes:
            return self.detail
        count = f"{len(self.nodes)} nodes" if len(self.nodes) > 1 else "1 node"
        return f"{self.detail} ({count}: {named(self.nodes)})"


def error(check: str, detail: str, remedy: str, nodes: Sequence[str] = ()) -> Finding:
    """Return a finding that keeps Temper from working."""
    return Finding(check, FindingSeverity.ERROR, detail, remedy, tuple(nodes))


def warning(check: str, detail: str, remedy: str, nodes: Sequence[str] = ()) -> Finding:
    """Return a finding that may harm Temper's work."""
    return Finding(check, FindingSeverity.WARNING, detail, remedy, tuple(nodes))


def note(check: str, detail: str, remedy: str, nodes: Sequence[str] = ()) -> Finding:
    """Return a finding for information."""
    return Finding(check, FindingSeverity.NOTE, detail, remedy, tuple(nodes))


@frozen
class Unknown:
    """A check that could not be made, and the reason."""

    what: str
    why: str


@frozen
class Report:
    """All findings, worst first, and the checks that could not be made."""

    findings: tuple[Finding, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    checks: tuple[str, ...] = field(default=())

    @property
    def is_clean(self) -> bool:
        """Whether there are no errors and no warnings."""
        return all(finding.severity is FindingSeverity.NOTE for finding in self.findings)


Check = Callable[[], Iterable[Finding]]


def run_checks(checks: Iterable[tuple[str, Check]]) -> Iterator[tuple[Finding, ...] | Unknown]:
    """Run each check. One that lacks a right, or gets malformed objects, is unknown.

    Raises MachineError if there is no API server.
    """
    for what, check in checks:
        try:
            yield tuple(check())
        except (ForbiddenError, NotFoundError, RefusalError) as problem:
            yield Unknown(what, str(problem))
        except MalformedError as problem:
            yield Unknown(what, problem.message)
        except MALFORMED as problem:
            yield Unknown(what, f"the API server sent an object that cannot be read: {problem}")


def _joined(findings: Iterable[Finding]) -> list[Finding]:
    """Merge equal findings of several nodes: a fleet may have thousands."""
    joined: dict[Finding, list[str]] = {}
    for finding in findings:
        joined.setdefault(evolve(finding, nodes=()), []).extend(finding.nodes)
    return [evolve(finding, nodes=tuple(sorted(set(nodes)))) for finding, nodes in joined.items()]


def report_of(checks: Sequence[tuple[str, Check]], known: Sequence[Unknown] = ()) -> Report:
    """Run the checks and put their findings in order."""
    findings: list[Finding] = []
    unknown = list(known)
    for answer in run_checks(checks):
        if isinstance(answer, Unknown):
            unknown.append(answer)
        else:
            findings += answer
    findings = _joined(findings)
    order = list(FindingSeverity)
    findings.sort(key=lambda finding: (order.index(finding.severity), finding.check, finding.nodes))
    return Report(tuple(findings), tuple(unknown), tuple(what for what, _ in checks))
