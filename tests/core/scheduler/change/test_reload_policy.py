"""When a changed plan may reach the engine."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.scheduler.change.reload_policy import ReloadPolicy


def test_nothing_is_due_while_nothing_changed():
    assert ReloadPolicy(2.0, 30.0, 20).due_at() is None


def test_a_change_is_due_after_the_quiet_period():
    policy = ReloadPolicy(2.0, 30.0, 20)

    policy.changed(100.0)
    policy.changed(101.0)

    assert policy.due_at() == 103.0
    assert "fall quiet" in policy.why_later(101.0)
    assert policy.why_later(103.0) == ""


def test_a_node_that_never_falls_quiet_is_served_all_the_same():
    policy = ReloadPolicy(2.0, 30.0, 20)

    for second in range(300):
        policy.changed(100.0 + second)

    assert policy.due_at() == 130.0


def test_reloads_keep_their_distance():
    policy = ReloadPolicy(2.0, 30.0, 20)
    policy.reloaded(100.0)

    policy.changed(101.0)

    assert policy.due_at() == 130.0
    assert "30 s apart" in policy.why_later(120.0)


def test_the_hours_budget_makes_the_next_reload_wait():
    policy = ReloadPolicy(0.0, 0.0, 3)
    for moment in (0.0, 10.0, 20.0):
        policy.reloaded(moment)

    policy.changed(30.0)

    assert policy.due_at() == 3600.0
    assert policy.why_later(30.0) == (
        "all 3 reloads of an hour are used up; the next is possible in 3570 s"
    )


def test_a_budget_with_room_is_not_blamed_for_the_spacing():
    policy = ReloadPolicy(0.0, 30.0, 3)
    policy.reloaded(0.0)

    policy.changed(10.0)

    assert policy.why_later(10.0) == "waiting 20 s: reloads are at least 30 s apart"


def test_a_settled_change_is_forgotten():
    policy = ReloadPolicy(2.0, 30.0, 20)
    policy.changed(100.0)

    policy.settled()

    assert policy.due_at() is None


@settings(max_examples=60)
@given(
    st.lists(st.floats(0.01, 200.0), min_size=1, max_size=200),
    st.integers(1, 6),
    st.floats(0.0, 60.0),
)
def test_no_stream_of_changes_breaks_spacing_or_budget(gaps, per_hour, interval):
    policy, now, reloads = ReloadPolicy(2.0, interval, per_hour), 0.0, []

    for gap in gaps:
        now += gap
        policy.changed(now)
        due = policy.due_at()
        if due is not None and due <= now + gap:
            now = max(now, due)
            policy.reloaded(now)
            reloads.append(now)

    assert all(b - a >= interval - 1e-6 for a, b in pairwise(reloads))
    within = zip(reloads, reloads[per_hour:], strict=False)
    assert all(later - earlier >= 3600 - 1e-6 for earlier, later in within)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["change", "settle", "reload", "wait"]), st.floats(0.0, 900.0)),
        max_size=300,
    ),
    st.integers(1, 5),
)
def test_whoever_reloads_only_when_it_is_due_keeps_to_the_budget_of_any_hour(events, per_hour):
    policy, now, reloads = ReloadPolicy(2.0, 30.0, per_hour), 0.0, []

    for event, wait_s in events:
        now += wait_s
        due = policy.due_at()
        if event == "change":
            policy.changed(now)
        elif event == "settle":
            policy.settled()
        elif event == "reload" and due is not None and due <= now:
            policy.reloaded(now)
            reloads.append(now)

    for start in reloads:
        assert sum(start <= moment < start + 3600 for moment in reloads) <= per_hour


@given(st.lists(st.floats(1.0, 600.0), min_size=1, max_size=30), st.integers(1, 4))
def test_what_waits_is_told_and_comes_when_it_was_told(gaps, per_hour):
    policy, now = ReloadPolicy(2.0, 30.0, per_hour), 0.0

    for gap in gaps:
        now += gap
        policy.changed(now)
        due = policy.due_at()
        assert policy.why_later(now)
        assert not policy.why_later(due)
        now = due
        policy.reloaded(now)
