import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, parse_profile
from temper_plugin_trainer.refining.profile_table import complete_table, toml_of
from temper_plugin_trainer.refining.variants import neighbours, other_starts, started, tiers_only
from tests.trainer.refining.surfaces import PROFILE, TABLE

EXCLUSIVE = PROFILE.replace('"boost"', '"exclusive"\ncpu_fraction = 0.5')


def changes(text, request_millis=None):
    return [each.change for each in neighbours(started(tomllib.loads(text)), request_millis)]


def test_neighbours_differ_in_one_parameter_and_are_valid_profiles():
    origin = started(TABLE)
    before = parse_profile(origin.text, "origin").thread_groups

    for variant in neighbours(origin):
        after = parse_profile(variant.text, variant.change).thread_groups
        assert sum(ours != theirs for ours, theirs in zip(after, before, strict=True)) == 1


def test_treatments_go_by_one_step_and_those_without_an_engine_come_first():
    assert changes(PROFILE) == [
        "compute: boost -> normal",
        "io: normal -> boost",
        "io: normal -> yield",
        "rest: normal -> boost",
        "rest: normal -> yield",
        "compute: boost -> latency",
    ]


def test_an_exclusive_group_is_changed_by_whole_cores_weight_and_slice():
    assert changes(EXCLUSIVE, 4_000)[4:] == [
        "compute: exclusive -> latency",
        "compute: cpu_fraction 0.5 -> 0.75",
        "compute: cpu_fraction 0.5 -> 0.25",
        "compute: weight default -> 50",
        "compute: weight default -> 200",
        "compute: slice_us default -> 1000",
        "compute: slice_us default -> 20000",
    ]


def test_without_a_request_a_fraction_is_left_as_it_is():
    assert not [each for each in changes(EXCLUSIVE) if "cpu_fraction" in each]


@pytest.mark.parametrize(
    ("request_millis", "cores"), [(None, {}), (4_000, {"compute": 2}), (4_100, {"compute": 3})]
)
def test_exclusive_groups_have_whole_cores_of_the_request(request_millis, cores):
    assert started(tomllib.loads(EXCLUSIVE)).exclusive_cores(request_millis) == cores


def test_no_fraction_asks_for_more_cores_than_the_request_has():
    more = EXCLUSIVE.replace("0.5", "0.9")

    assert not [each for each in changes(more, 2_000) if "0.9 -> 1" in each]


def test_a_weaker_treatment_drops_the_keys_that_it_does_not_take():
    text = EXCLUSIVE.replace("0.5", "0.5\nweight = 300\nslice_us = 5000")
    weaker = next(v for v in neighbours(started(tomllib.loads(text))) if "-> latency" in v.change)

    assert "weight" not in weaker.text
    assert "cpu_fraction" not in weaker.text
    assert "slice_us = 5000" in weaker.text


def test_hints_alone_tell_variants_apart_that_need_the_same_layers():
    by_change = {each.change: each.layer_needs for each in neighbours(started(TABLE))}
    needs = started(TABLE).layer_needs

    assert by_change["io: normal -> yield"] == needs == tiers_only(TABLE).layer_needs
    assert by_change["compute: boost -> latency"] != needs


def test_a_trial_has_an_id_of_its_own_and_no_evidence():
    table = {**TABLE, "evidence": {"effect": "not measured"}}

    for variant in (started(table), tiers_only(table)):
        assert parse_profile(variant.text, "").id == "train-shop"
        assert "evidence" not in variant.text


def test_a_profile_that_extends_another_is_refused():
    with pytest.raises(DocumentError, match="extends"):
        complete_table('schema_version = 1\nid = "x"\nextends = "mysql"\n', "x.toml")


KEYS = st.text(min_size=1, max_size=8)
SCALARS = st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | st.text(max_size=12)
ROWS = st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), max_size=3)
SECTIONS = ROWS | st.lists(ROWS, min_size=1, max_size=3)
TABLES = st.dictionaries(KEYS, SCALARS | SECTIONS, max_size=4)


@given(TABLES)
def test_a_table_is_the_same_after_writing_and_reading(table):
    assert tomllib.loads(toml_of(table)) == table


def treatments_of(variant):
    return [group.get("treatment", "normal") for group in variant.groups]


SERVED = """
[[thread_groups]]
name = "served"
match = [{ comm_prefix = "conn-" }]
treatment = "latency"
"""


def test_a_profile_that_nobody_wrote_is_also_tried_with_threads_that_compute_yielding():
    profile = EXCLUSIVE.replace(
        '[[thread_groups]]\nname = "io"', f"{SERVED}[[thread_groups]]\nname = 'io'"
    )

    hints, yielding = other_starts(tomllib.loads(profile))

    assert treatments_of(hints)[:2] == ["yield", "boost"]
    assert treatments_of(yielding)[:2] == ["yield", "latency"]
    assert hints.layer_needs == tiers_only(TABLE).layer_needs
    assert "cpu_fraction" not in hints.text


@pytest.mark.parametrize("treatment", ["exclusive", "normal"])
def test_threads_that_compute_may_be_the_work_if_no_other_thread_serves(treatment):
    profile = PROFILE.replace('"boost"', f'"{treatment}"')

    starts = other_starts(tomllib.loads(profile))

    assert [treatments_of(each)[0] for each in starts] == ["boost", "yield"]


def test_a_profile_of_which_all_is_serving_by_hints_has_one_start_more():
    (latency,) = other_starts(tomllib.loads(PROFILE.split('[[thread_groups]]\nname = "io"')[0]))

    assert treatments_of(latency) == ["latency"]
