"""What follows from failures on a node whose pods come and go all the time."""

import pytest

from temper_core.scheduler.failure.backoff import Backoff
from temper_core.scheduler.failure.diagnosis import Diagnosis, EndKind
from temper_core.scheduler.failure.recovery import Recovery


def starts_within_an_hour(kind: EndKind) -> int:
    """Count the starts of an engine that lives 35 s, with a changed plan every minute."""
    recovery = Recovery(Backoff(10.0, 600.0, 5, chance=lambda: 0.5), 60.0)
    starts, failing_at = 0, -1
    for second in range(3_600):
        now = float(second)
        if second % 60 == 0:
            recovery.plan_changed()
        if second == failing_at:
            recovery.failed(Diagnosis(kind, "x"), now, may_roll_back=False)
        elif second > failing_at and recovery.hold(now) is None:
            starts += 1
            failing_at = second + 35
    return starts


@pytest.mark.parametrize(
    ("kind", "most"), [(EndKind.STALL, 5), (EndKind.PANIC, 5), (EndKind.VERIFIER_TOO_LARGE, 10)]
)
def test_the_crash_budget_holds_while_the_plan_changes_every_minute(kind, most):
    assert 5 <= starts_within_an_hour(kind) <= most


def test_a_spent_budget_names_the_last_failure_and_the_way_out():
    recovery = Recovery(Backoff(10.0, 600.0, 1), 60.0)

    recovery.failed(Diagnosis(EndKind.STALL, "who waited"), 0.0, may_roll_back=False)

    hold = recovery.hold(86_400.0)
    assert hold is not None
    assert hold.reason == "crash_loop"
    assert "who waited" in hold.detail
    assert recovery.until is None


def test_going_through_safe_mode_forgives_all():
    recovery = Recovery(Backoff(10.0, 600.0, 1), 60.0)
    recovery.failed(Diagnosis(EndKind.STALL, "x"), 0.0, may_roll_back=False)

    recovery.forget()

    assert recovery.hold(0.0) is None


def test_a_failure_with_a_good_plan_at_hand_keeps_no_engine_away_but_the_failed_plan_waits():
    recovery = Recovery(Backoff(10.0, 600.0, 2, chance=lambda: 0.5), 60.0)
    fault = Diagnosis(EndKind.START_TIMEOUT, "x")

    first = recovery.failed(fault, 0.0, may_roll_back=True)
    second = recovery.failed(fault, 100.0, may_roll_back=True)

    assert recovery.hold(100.0) is None
    assert first == 10.0
    assert second == 3_600.0  # only then has the first failure left the hour
