"""Differences between the templates of two revisions."""

import json

from temper_plugin_dashboard.fleet.masking import HIDDEN
from temper_plugin_dashboard.fleet.newest import Newest
from temper_plugin_dashboard.fleet.revisions import (
    LONGEST_PATH,
    LONGEST_VALUE,
    MOST_CHANGES,
    MOST_VALUES,
    changes,
    values_of,
)


def differences(before, after):
    return changes(values_of(before), values_of(after))


def template(*, labels=None, **container):
    return {
        "metadata": {"labels": labels or {}},
        "spec": {"containers": [{"name": "app", **container}]},
    }


def test_a_value_that_changed_has_both():
    (change,) = differences(template(image="a:1"), template(image="a:2"))

    assert change == {
        "path": "spec.containers[app].image",
        "before": "a:1",
        "after": "a:2",
    }


def test_what_was_added_and_what_was_removed_has_one_side():
    before = template(resources={"limits": {"cpu": "1"}})
    after = template(args=["-v", "--fast"])

    found = {each["path"]: (each["before"], each["after"]) for each in differences(before, after)}

    assert found == {
        "spec.containers[app].resources.limits.cpu": ("1", None),
        "spec.containers[app].args": (None, "-v --fast"),
    }


def test_a_hidden_value_that_changed_is_a_change():
    before = template(env=[{"name": "KEY", "value": "old-secret"}])
    after = template(env=[{"name": "KEY", "value": "new-secret"}])

    (change,) = differences(before, after)

    assert change == {
        "path": "spec.containers[app].env[KEY].value",
        "before": HIDDEN,
        "after": HIDDEN,
    }


def test_the_hash_of_a_revision_is_no_change():
    before = template(labels={"pod-template-hash": "1"})
    after = template(labels={"pod-template-hash": "2"})

    assert differences(before, after) == []


def test_the_number_and_the_length_of_changes_have_a_bound():
    after = template(env=[{"name": f"V{number}", "value": "x"} for number in range(500)])
    long = {"metadata": {"annotations": {"note": "x" * 10_000}}}

    assert len(differences(template(), after)) == MOST_CHANGES
    assert len(json.dumps(differences({}, long))) < LONGEST_VALUE + 200


def test_the_newest_are_kept_whatever_the_order():
    kept = Newest(3, lambda each: each)
    for number in (5, 1, 9, 7, 3, 9):
        kept.add(number, number)

    assert kept.sorted() == [9, 7, 5]


def test_a_template_with_more_values_than_are_kept_is_not_compared():
    env = [{"name": f"V{number}"} for number in range(MOST_VALUES)]

    assert values_of(template()) is not None
    assert values_of(template(env=env)) is None


def test_long_names_take_no_more_memory_than_short_ones():
    values = values_of({"a" * 1_000_000: {str(number): number for number in range(1000)}})

    assert max(map(len, values)) <= LONGEST_PATH
