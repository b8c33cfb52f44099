"""The groups that a thread is in over its life, and how long it waits for user space."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import Lifetime, group_stays, parse_profile
from temper_core.records.steering import LOOK_EVERY_S
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity

PROFILE = """
id = "db"
[[thread_groups]]
name = "snapshots"
match = [{ process = "db", title_pattern = "save" }]
treatment = "yield"
[[thread_groups]]
name = "jit"
match = [{ comm_prefix = "C2", older_than_s = 60 }]
treatment = "yield"
[[thread_groups]]
name = "serving"
match = [{ comm_prefix = "C2" }, { leader = true }]
treatment = "latency"
[[thread_groups]]
name = "rest"
"""
HOT = """
[[thread_groups]]
name = "hot"
match = [{ behaviour = { cpu_share = [0.9, 1.0] } }]
"""
BUSY = ThreadBehaviour(cpu_share=1.0)


def groups(text=PROFILE):
    return parse_profile(text, "db.toml").thread_groups


def stays(lasts_s, age_s=0.0, text=PROFILE, **thread):
    identity = ThreadIdentity("", thread.pop("comm", "db"), "db", **thread)
    found = group_stays(groups(text), identity, Lifetime(lasts_s, age_s))
    return [(each.group.name, pytest.approx(each.share), each.is_late) for each in found]


def test_a_thread_that_prefixes_take_is_in_its_group_from_the_start():
    assert stays(0.001, comm="C2 x") == [("serving", 1.0, False)]


def test_a_long_lived_thread_is_hardly_late():
    assert stays(100.0, title="save") == [("rest", 0.0025, True), ("snapshots", 0.9975, False)]


def test_a_short_lived_thread_is_seldom_decided_in_time():
    assert stays(0.1, title="save") == [("rest", 0.9, True), ("snapshots", 0.1, False)]


def test_at_its_start_a_thread_is_where_its_prefixes_put_it():
    first, _ = stays(0.1, title="save", is_leader=True)

    assert first == ("serving", 0.9, True)


def test_a_thread_that_is_older_than_any_wait_is_decided_already():
    assert stays(0.1, age_s=30.0, title="save") == [("snapshots", 1.0, False)]


def test_behaviour_takes_two_windows():
    text = PROFILE.replace('id = "db"', f'id = "db"{HOT}')

    assert stays(4.0, text=text, behaviour=BUSY) == [("rest", 1.0, True)]
    assert stays(8.5, text=text, behaviour=BUSY) == [("rest", 0.5, True), ("hot", 0.5, False)]


def test_a_thread_that_may_be_of_a_group_by_behaviour_does_not_yield_meanwhile():
    text = PROFILE.replace('id = "db"', f'id = "db"{HOT}')
    text += 'treatment = "yield"\n'
    thread = ThreadIdentity("", "db", "db", behaviour=BUSY)

    first, decided = group_stays(groups(text), thread, Lifetime(8.5))

    assert (first.group, first.is_late) == (None, True)
    assert decided.group.name == "hot"


def test_a_thread_moves_on_when_it_reaches_an_age():
    assert stays(40.0, age_s=30.0, comm="C2 x") == [("serving", 0.75, False), ("jit", 0.25, False)]
    assert stays(40.0, age_s=60.0, comm="C2 x") == [("jit", 1.0, False)]


@given(st.floats(0.01, 5.0), st.floats(0.0, 1.0), st.sampled_from(["", "save"]))
def test_the_shares_make_up_the_whole_life(lasts_s, age_s, title):
    identity = ThreadIdentity("", "db", "db", title=title)
    found = group_stays(groups(), identity, Lifetime(lasts_s, age_s))

    assert sum(each.share for each in found) == pytest.approx(1.0)
    assert all(each.share > 0 for each in found)


@pytest.mark.parametrize("lasts_s", [0.05, 0.3, 0.5, 0.7, 3.0])
def test_the_expected_wait_is_that_of_looks_at_any_moment(lasts_s):
    seeded = random.Random(1)
    waits = [min(lasts_s, seeded.uniform(0, LOOK_EVERY_S)) for _ in range(20_000)]
    first, _ = group_stays(groups(), ThreadIdentity("", "x", "db", title="save"), Lifetime(lasts_s))

    assert first.share * lasts_s == pytest.approx(sum(waits) / len(waits), rel=0.02)
