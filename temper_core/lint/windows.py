"""Runs the invariants over each window, and logs each violation once."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import structlog
from attrs import define

from temper_core.errors import PluginError
from temper_core.lint.cases import Docket
from temper_core.plugin_host import plain_record
from temper_core.plugin_host.plain_values import shown
from temper_core.records.invariants import Invariant
from temper_core.records.lint import Finding, Severity, Violation
from temper_core.records.snapshots import Snapshot
from temper_core.settings.models import LintSettings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PLUGIN_HEALTH = "plugin_health"
MOST_FINDINGS = 100_000
"""Findings taken from one invariant per window, because its iterator may be endless."""
MOST_WARNINGS = 50
"""The largest number of lines logged per ``warn_every_s``."""
GAP_PERIODS = 3.0
"""A window of more periods than this spans a pause of the machine or the agent."""


INVARIANTS = "invariants"
"""The part of a plugin that is set aside if one of them hangs: one call runs them all."""

Call = Callable[..., Any]


class Linter:
    """Checks every snapshot against the invariants. ``call`` is the plugin host's guard.

    ``call(plugin, function, *arguments, part=...)`` returns the function's result or raises
    PluginError.
    """

    def __init__(
        self, invariants: Sequence[tuple[str, Invariant]], settings: LintSettings, call: Call
    ) -> None:
        self._docket = [Docket(plugin, invariant, settings) for plugin, invariant in invariants]
        self._call = call
        self._warnings = _Warnings(settings.warn_every_s)
        self._ailing: dict[str, float] = {}
        self._standing: tuple[Violation, ...] = ()
        self._basis: tuple[object, ...] = ()

    @property
    def invariants(self) -> tuple[tuple[str, Invariant], ...]:
        """The invariants of plugins, each with its plugin's name."""
        return tuple((docket.plugin, docket.invariant) for docket in self._docket)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the invariants, ``plugin_health`` included."""
        return (*(docket.invariant.name for docket in self._docket), PLUGIN_HEALTH)

    def judge(self, snapshot: Snapshot) -> tuple[Violation, ...]:
        """Return the violations in effect after this window. Never raises.

        A snapshot without a window, the baseline, changes nothing. A window is not checked if the
        engine changed in it, if it spans a pause, or if its running threads are not known.
        """
        if snapshot.window_s <= 0:
            return self._standing
        plugins = snapshot.plugins
        failures = {plugin.name: "; ".join(plugin.lost) for plugin in plugins if plugin.lost}
        mute = {plugin.name: plugin.failure for plugin in plugins if plugin.state == "set_aside"}
        if self._has_changed(snapshot):
            for docket in self._docket:
                docket.start_anew()
        elif _is_pause(snapshot) or not snapshot.observing.knows_threads:
            for docket in self._docket:
                docket.skip()
        else:
            mute = {**self._hear(snapshot), **mute}
        judged = [violation for docket in self._docket for violation in docket.violations()]
        violations = (*judged, *self._health({**failures, **mute}, mute, snapshot.at))
        self._warnings.tell(violations, snapshot.monotonic_s)
        self._tell_cleared(violations)
        self._standing = violations
        return violations

    def _has_changed(self, snapshot: Snapshot) -> bool:
        status, before = snapshot.status, self._basis
        self._basis = (status.mode, status.generation, status.engine)
        return bool(before) and before != self._basis

    def _hear(self, snapshot: Snapshot) -> dict[str, str]:
        """Run all invariants. Return the errors of failed calls by plugin."""
        failures: dict[str, str] = {}
        for plugin in dict.fromkeys(docket.plugin for docket in self._docket):
            dockets = [docket for docket in self._docket if docket.plugin == plugin]
            # The last one to fail runs first: the success of others after it ends the series of
            # failures for which the host would set all of them aside.
            waiting = sorted(dockets, key=lambda docket: not docket.has_failed)
            while waiting:
                waiting = self._ask(plugin, waiting, snapshot, failures)
        return failures

    def _ask(
        self,
        plugin: str,
        dockets: Sequence["Docket"],
        snapshot: Snapshot,
        failures: dict[str, str],
    ) -> list["Docket"]:
        """Run a plugin's invariants in one guarded call. Return those after one that failed.

        A separate call for each would cost more than most of them do.
        """
        answers: list[list[Finding]] = []
        hearing = _Hearing([docket.invariant for docket in dockets], answers)
        try:
            self._call(plugin, hearing.check, snapshot, part=INVARIANTS)
        except PluginError as error:
            failures.setdefault(error.plugin, error.reason)
        # A call that timed out may still add to the answers.
        results = tuple(answers)
        for docket, findings in zip(dockets, results, strict=False):
            docket.judge(findings, snapshot)
        for failed in dockets[len(results) : len(results) + 1]:
            failed.skip()
            failed.has_failed = True
        return list(dockets[len(results) + 1 :])

    def _health(
        self, failures: Mapping[str, str], mute: Container[str], at: float
    ) -> Iterable[Violation]:
        self._ailing = {plugin: self._ailing.get(plugin, at) for plugin in failures}
        for plugin, reason in sorted(failures.items()):
            own = [docket.invariant.name for docket in self._docket if docket.plugin == plugin]
            yield Violation(
                invariant=PLUGIN_HEALTH,
                severity=Severity.WARNING,
                subject=plugin,
                message=f"plugin {plugin!r} failed: {reason}",
                fix="repair or remove the plugin and restart the agent; see GET /plugins",
                evidence={"invariants_lost": ", ".join(own if plugin in mute else ())},
                since=self._ailing[plugin],
                plugin=plugin,
            )

    def _tell_cleared(self, violations: Sequence[Violation]) -> None:
        if not self._standing:
            return
        keys = {(violation.invariant, violation.subject) for violation in violations}
        cleared = [v for v in self._standing if (v.invariant, v.subject) not in keys]
        if cleared:
            subjects = [f"{violation.invariant}: {violation.subject}" for violation in cleared]
            log.info("violations_cleared", count=len(cleared), first=subjects[:3])


def _is_pause(snapshot: Snapshot) -> bool:
    period_s = max(snapshot.observing.period_s, snapshot.overhead.period_s)
    return period_s > 0 and snapshot.window_s > GAP_PERIODS * period_s


@define(eq=False)
class _Hearing:
    """Runs in the plugin's thread. Answers before a failure are kept."""

    invariants: Sequence[Invariant]
    answers: list[list[Finding]]

    def check(self, snapshot: Snapshot) -> list[list[Finding]]:
        """Run the invariants in turn. An exception of one ends the run."""
        for invariant in self.invariants:
            findings = islice(invariant.check(snapshot) or (), MOST_FINDINGS)
            self.answers.append([_plain(finding, invariant) for finding in findings])
        return self.answers


def _plain(finding: object, invariant: Invariant) -> Finding:
    if type(finding) is not Finding:
        raise TypeError(f"{invariant.name} returned {shown(finding)}, which is not a Finding")
    return plain_record(finding, Finding)


class _Warnings:
    """Logs each violation at most once per period, and few lines in all."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._warned_at: dict[tuple[str, str], float] = {}
        self._began_s = float("-inf")
        self._lines = 0

    def tell(self, violations: Sequence[Violation], now_s: float) -> None:
        if now_s - self._began_s >= self._every_s:
            self._began_s, self._lines = now_s, 0
        self._warned_at = {
            key: at for key, at in self._warned_at.items() if now_s - at < self._every_s
        }
        pending = [v for v in violations if (v.invariant, v.subject) not in self._warned_at]
        room = MOST_WARNINGS - self._lines
        for violation in pending[: max(0, room)]:
            self._warned_at[violation.invariant, violation.subject] = now_s
            self._warn(violation)
        if len(pending) > room > 0:
            log.warning("violations_not_logged", count=len(pending) - room, logged=MOST_WARNINGS)
        self._lines += min(len(pending), max(0, room))

    @staticmethod
    def _warn(violation: Violation) -> None:
        is_error = violation.severity is Severity.ERROR
        (log.error if is_error else log.warning)(
            "violation_stands",
            id=violation.id,
            invariant=violation.invariant,
            subject=violation.subject,
            message=violation.message,
            fix=violation.fix,
            plugin=violation.plugin,
            **{f"evidence_{name}": value for name, value in violation.evidence.items()},
        )
