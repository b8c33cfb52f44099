"""Reports of the current violations: their age as a metric, and ``GET /violations``."""

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import asdict

from temper_core import (
    InputError,
    Metric,
    MetricFamily,
    MetricSample,
    Mode,
    PanelHint,
    Request,
    Snapshot,
    Violation,
    did_you_mean,
)
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.rules import ENFORCING, RULES

AGE = MetricFamily(
    "temper_lint_violation_age_seconds",
    "Age of the oldest current violation of an invariant.",
    labels=("invariant",),
    panels=(
        PanelHint(
            "Promises are broken for",
            "seconds",
            query="max by (invariant) (temper_lint_violation_age_seconds{@}) > 0",
            legend="{{invariant}}",
        ),
    ),
)


def ages(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield the age of each invariant's oldest current violation. 0 if it has none."""
    oldest = dict.fromkeys(snapshot.invariants, 0.0)
    for violation in snapshot.violations:
        age_s = max(0.0, snapshot.at - violation.since)
        oldest[violation.invariant] = max(age_s, oldest.get(violation.invariant, 0.0))
    yield AGE.metric(
        [MetricSample(age_s, {"invariant": name}) for name, age_s in sorted(oldest.items())]
    )


def violations(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the current violations, oldest first. ``at`` is null before the first snapshot.

    ``age_s`` is the age of the snapshot, and ``window_s`` the time that it covers, in seconds.
    ``unjudged`` has the linter's invariants that are not judged in this mode, with the reason.
    ``thresholds`` are the linter's own in force. Raises InputError for an unknown invariant.
    """
    snapshot = request.snapshot
    if snapshot is None:
        unknown = dict.fromkeys(("at", "age_s", "window_s"))
        empty: dict[str, Any] = {"invariants": [], "unjudged": [], "violations": []}
        return {**unknown, **empty, "thresholds": asdict(limits)}
    invariant = request.query.get("invariant")
    if invariant is not None and invariant not in snapshot.invariants:
        known = ", ".join(snapshot.invariants) or "none"
        meant = did_you_mean(invariant, snapshot.invariants)
        raise InputError(f"there is no invariant {invariant!r}; there are: {known}{meant}")
    standing = [v for v in snapshot.violations if invariant in (None, v.invariant)]
    if "id" in request.query:
        standing = [v for v in standing if v.id == request.query["id"]]
    standing.sort(key=lambda violation: (violation.since, violation.invariant, violation.subject))
    return {
        "at": _date(snapshot.at),
        "age_s": round(time.monotonic() - snapshot.monotonic_s, 1),
        "window_s": round(snapshot.window_s, 1),
        "invariants": list(snapshot.invariants),
        "unjudged": list(unjudged(snapshot)),
        "violations": [_plain(violation, snapshot.at) for violation in standing],
        "thresholds": asdict(limits),
    }


def unjudged(snapshot: Snapshot) -> Iterator[Mapping[str, str]]:
    """Yield the linter's invariants that no window of this mode is judged by, and why not."""
    why = _why_unjudged(snapshot)
    if not why:
        return
    for rule in RULES:
        if rule.judged == ENFORCING and rule.name in snapshot.invariants:
            yield {"invariant": rule.name, "why": why}


def _why_unjudged(snapshot: Snapshot) -> str:
    """Return why placement cannot be judged. Empty if it can, once the engine has settled."""
    status = snapshot.status
    if status.mode is not Mode.ENFORCING:
        return f"the node does not enforce: {' '.join(filter(None, (status.mode, status.reason)))}"
    return "" if snapshot.plan is not None else "no plan is in force"


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
    """Return wall-clock seconds in the format of ``/observe``: RFC 3339 in UTC, with a Z."""
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
