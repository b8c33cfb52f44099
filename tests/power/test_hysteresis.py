"""When a profile that was measured takes the place of another one."""

from types import SimpleNamespace

import pytest

from temper_plugin_power.classifier.classifying import NO_METRICS
from temper_plugin_power.classifier.signals import Signals
from temper_plugin_power.controller.hysteresis import Candidate, categories_of, decide
from temper_plugin_power.controller.merge_changes import merge_change
from temper_plugin_power.workloads.owners import Workload
from temper_plugin_power.workloads.profiling import WorkloadProfile
from tests.power.made import a_profile

WEB = Workload("shop", "Deployment", "web")
HOLD_S = 600


def stored(profile, *, is_manual=False, is_measured=True, status=True):
    return SimpleNamespace(
        is_manual=is_manual,
        status={"confidence": 0.5} if status else {},
        profile=profile,
        is_measured=is_measured,
    )


def fresh(profile, *, is_measured=True):
    return WorkloadProfile(WEB, "n1", profile, {}, Signals() if is_measured else None)


def decided(old, new, candidate=None, now=0.0):
    return decide(old, new, candidate, now, HOLD_S)


@pytest.mark.parametrize("is_measured", [True, False])
def test_a_workload_without_a_profile_gets_one(is_measured):
    decision = decided(None, fresh(a_profile(), is_measured=is_measured))

    assert decision.is_written
    assert decision.is_settled is is_measured


def test_a_manual_profile_stays():
    old = stored(a_profile("performance"), is_manual=True)

    assert not decided(old, fresh(a_profile(hints=("criticality.class",)))).is_written


def test_a_profile_without_a_status_is_written():
    assert decided(stored(a_profile(), status=False, is_measured=False), fresh(a_profile()))


def test_without_metrics_what_was_measured_stays():
    decision = decided(stored(a_profile(cpu="high")), fresh(a_profile(), is_measured=False))

    assert (decision.is_written, decision.is_settled) == (False, False)


def test_the_first_metrics_count_at_once():
    old = stored(a_profile(), is_measured=False)

    assert decided(old, fresh(a_profile(cpu="high"))).is_written


def test_other_numbers_of_the_same_categories_count_at_once():
    assert decided(stored(a_profile()), fresh(a_profile(confidence=0.9))).is_written


@pytest.mark.parametrize(
    ("hints", "old", "new"),
    [
        (("criticality.class",), "standard", "performance"),
        (("criticality.class",), "performance", "standard"),
    ],
)
def test_another_annotated_value_counts_at_once(hints, old, new):
    before = stored(a_profile(old, hints=hints))

    assert decided(before, fresh(a_profile(new, hints=hints))).is_written


def test_a_hint_that_is_taken_back_counts_at_once():
    before = stored(a_profile("performance", hints=("criticality.class",)))

    assert decided(before, fresh(a_profile(hints=()))).is_written


@pytest.mark.parametrize(("held_s", "is_written"), [(0, False), (599, False), (600, True)])
def test_other_categories_count_once_they_have_held_for_the_window(held_s, is_written):
    new = a_profile(cpu="high")
    candidate = Candidate(categories_of(new), 1000.0)

    decision = decided(stored(a_profile()), fresh(new), candidate, 1000.0 + held_s)

    assert decision.is_written is is_written
    assert decision.is_settled is is_written


def test_another_candidate_begins_anew():
    candidate = Candidate(categories_of(a_profile(cpu="high")), 0.0)

    decision = decided(stored(a_profile()), fresh(a_profile(cpu="low")), candidate, 5000.0)

    assert not decision.is_written
    assert decision.candidate == Candidate(categories_of(a_profile(cpu="low")), 5000.0)


def test_the_reason_of_hints_tells_that_nothing_was_measured():
    assert NO_METRICS == "hints only (no metrics available)"


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({}, {"a": None}, {"a": None}),
        ({"a": 1, "b": 2}, {"a": 1}, {"b": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"kept": 1}, {}, {}),
    ],
)
def test_a_merge_patch_has_what_differs(before, after, change):
    assert merge_change(before, after, kept=("kept",)) == change
