"""What is said of the violations that stand: their age as a metric, and ``GET /violations``."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import asdict

from temper_core import InputError, Metric, MetricSample, Request, Snapshot, Violation
from temper_plugin_linter.limits import Limits


def ages(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield the age of each invariant's oldest standing violation. 0 where none stands."""
    oldest = dict.fromkeys(snapshot.invariants, 0.0)
    for violation in snapshot.violations:
        age_s = max(0.0, snapshot.at - violation.since)
        oldest[violation.invariant] = max(age_s, oldest.get(violation.invariant, 0.0))
    yield Metric(
        "temper_lint_violation_age_seconds",
        "How long the oldest standing violation of the invariant has stood.",
        [MetricSample(age_s, {"invariant": name}) for name, age_s in sorted(oldest.items())],
    )


def violations(request: Request, limits: Limits) -> dict[str, Any]:
    """Answer with the violations that stand, oldest first. ``at`` is null before the first look.

    ``thresholds`` are the linter's own, as in force. Raises InputError for an invariant that the
    node is not held against.
    """
    snapshot = request.snapshot
    if snapshot is None:
        return {"at": None, "invariants": [], "violations": [], "thresholds": asdict(limits)}
    wanted = request.query.get("invariant")
    if wanted is not None and wanted not in snapshot.invariants:
        known = ", ".join(snapshot.invariants) or "there are none"
        raise InputError(f"no invariant is called {wanted!r}; there are: {known}")
    standing = [v for v in snapshot.violations if wanted in (None, v.invariant)]
    if "id" in request.query:
        standing = [v for v in standing if v.id == request.query["id"]]
    standing.sort(key=lambda violation: (violation.since, violation.invariant, violation.subject))
    return {
        "at": _date(snapshot.at),
        "invariants": list(snapshot.invariants),
        "violations": [_plain(violation, snapshot.at) for violation in standing],
        "thresholds": asdict(limits),
    }


def _plain(violation: Violation, at: float) -> Mapping[str, Any]:
    return {
        "id": violation.id,
        "invariant": violation.invariant,
        "severity": str(violation.severity),
        "subject": violation.subject,
        "message": violation.message,
        "fix": violation.fix,
        "evidence": dict(violation.evidence),
        "since": _date(violation.since),
        "age_s": round(max(0.0, at - violation.since), 3),
        "plugin": violation.plugin,
    }


def _date(seconds: float) -> str:
    """Write wall-clock seconds as ``/observe`` does: RFC 3339 in UTC, with a Z."""
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
