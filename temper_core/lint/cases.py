"""The cases of one invariant: a subject that breaks it in enough windows is a violation."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping

from attrs import define, evolve, field

from temper_core.records.invariants import Invariant
from temper_core.records.lint import Finding, Violation
from temper_core.records.snapshots import Snapshot
from temper_core.settings.models import LintSettings

MOST_SUBJECTS = 1000
"""Subjects followed per invariant. More would add no information."""
MOST_OF_OWNER = 50
"""Subjects of one owner among them, so that new names of its threads displace no others."""
LISTED_RATIO = 0.2
"""Share of a window from which on a thread must have a sample, or the window ends no violation."""
CHANGING = "(different threads)"
"""Marks the subject of an owner, different threads of which break the invariant."""


@define(eq=False)
class _Case:
    """One subject of one invariant: its windows (None: not checked), and the last finding."""

    windows: deque[bool | None]
    since: float
    finding: Finding
    clean: int = 0
    stands: bool = False


@define(eq=False)
class Docket:
    """One invariant and its open cases by subject."""

    plugin: str
    invariant: Invariant
    _settings: LintSettings
    has_failed: bool = False
    _cases: dict[str, _Case] = field(factory=dict)
    _owner_cases: dict[str, _Case] = field(factory=dict)

    def judge(self, answer: Iterable[Finding], snapshot: Snapshot) -> None:
        """Record one window with the invariant's findings."""
        self.has_failed = False
        findings = {finding.subject: finding for finding in answer}
        self._record(self._cases, findings, snapshot)
        stands = {case.finding.owner for case in self._cases.values() if case.stands}
        self._record(
            self._owner_cases,
            {
                finding.owner: evolve(finding, subject=f"{finding.owner} {CHANGING}")
                for finding in findings.values()
                if finding.owner and finding.owner not in stands
            },
            snapshot,
        )
        self._close_cases()

    def skip(self) -> None:
        """Record a window that was not checked: neither broken nor clean."""
        for case in (*self._cases.values(), *self._owner_cases.values()):
            case.windows.append(None)
        self._close_cases()

    def start_anew(self) -> None:
        """Drop cases that are no violations yet: they were found under another engine or none."""
        self._cases = {subject: case for subject, case in self._cases.items() if case.stands}
        self._owner_cases = {key: case for key, case in self._owner_cases.items() if case.stands}
        self.skip()

    def violations(self) -> Iterable[Violation]:
        """Yield the violations by subject."""
        cases = (*self._cases.values(), *self._owner_cases.values())
        for case in sorted(cases, key=lambda case: case.finding.subject):
            if case.stands:
                yield Violation(
                    invariant=self.invariant.name,
                    severity=self.invariant.severity,
                    subject=case.finding.subject,
                    message=case.finding.message,
                    fix=case.finding.fix,
                    evidence=case.finding.evidence,
                    since=case.since,
                    plugin=self.plugin,
                )

    def _record(
        self, cases: dict[str, _Case], findings: Mapping[str, Finding], snapshot: Snapshot
    ) -> None:
        of_owner = Counter(case.finding.owner for case in cases.values())
        for key, finding in findings.items():
            case = cases.get(key)
            if case is not None:
                case.finding = finding
            elif len(cases) < MOST_SUBJECTS and _has_room(of_owner, finding.owner):
                windows: deque[bool | None] = deque(maxlen=self._settings.windows)
                cases[key] = _Case(windows, snapshot.at, finding)
        lists_all = _lists_all(snapshot)
        for key, case in cases.items():
            if key in findings or lists_all:
                self._enter(case, is_broken=key in findings)
            elif not case.stands:
                case.windows.append(None)

    def _enter(self, case: _Case, *, is_broken: bool) -> None:
        case.windows.append(is_broken)
        case.clean = 0 if is_broken else case.clean + 1
        if case.stands and case.clean >= self._settings.clear_after:
            case.stands = False
            case.windows.clear()
        elif case.windows.count(True) >= self._settings.fire_after:
            case.stands = True

    def _close_cases(self) -> None:
        self._cases = _open_cases(self._cases)
        self._owner_cases = _open_cases(self._owner_cases)


def _open_cases(cases: dict[str, _Case]) -> dict[str, _Case]:
    return {
        key: case
        for key, case in cases.items()
        if True in case.windows or (case.stands and False in case.windows)
    }


def _has_room(of_owner: Counter[str], owner: str) -> bool:
    of_owner[owner] += 1
    return not owner or of_owner[owner] <= MOST_OF_OWNER


def _lists_all(snapshot: Snapshot) -> bool:
    """Whether each thread that used or waited for much of the window has a sample of its own."""
    observing = snapshot.observing
    return not observing.unlisted or observing.least_s <= LISTED_RATIO * snapshot.window_s
