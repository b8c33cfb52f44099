"""The formula: what a node is worth to a pod, and that nothing makes it raise or leave 0 to 100."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import Tier
from temper_plugin_density.placement.scoring import OLD_AFTER_S, Score, score
from tests.density.placement.made import NOW, bound, demand, facts

FENCING = (Tier.CRITICAL, Tier.HIGH)
PACKING = (Tier.LOW, Tier.BACKGROUND)
NOTHING = bound()


def points(tier, millis=1000, node=None, there=NOTHING, now=NOW):
    return score(demand(tier, millis), node or facts(), there, now)


@pytest.mark.parametrize(
    ("tier", "millis", "there", "told", "after"),
    [
        (Tier.CRITICAL, 1000, [], 0, 1),
        (Tier.CRITICAL, 2000, [], 0, 1),
        (Tier.CRITICAL, 2001, [], 0, 2),
        (Tier.CRITICAL, 0, [], 0, 1),
        (Tier.CRITICAL, 1000, [(Tier.CRITICAL, 1000)], 0, 1),
        (Tier.CRITICAL, 1000, [(Tier.CRITICAL, 1500)], 0, 2),
        (Tier.CRITICAL, 1000, [(Tier.HIGH, 1000)], 0, 2),
        (Tier.HIGH, 1000, [(Tier.CRITICAL, 3000), (Tier.HIGH, 500)], 0, 3),
        (Tier.HIGH, 1000, [(Tier.NORMAL, 8000), (Tier.BACKGROUND, 4000)], 0, 1),
        # The agent fences more than requests explain: a thread group, a workload of the host.
        (Tier.CRITICAL, 1000, [], 3, 4),
        (Tier.CRITICAL, 500, [(Tier.CRITICAL, 1000)], 3, 3),
        # More is bound than the agent has told of yet.
        (Tier.CRITICAL, 1000, [(Tier.CRITICAL, 6000)], 1, 4),
    ],
)
def test_a_fencing_pod_takes_whole_cores_of_the_budget(tier, millis, there, told, after):
    found = points(tier, millis, facts(fenced_cores=told), bound(*there))

    assert found.rule == "contention"
    assert found.inputs["fenced_after"] == after
    assert found.points == pytest.approx(100 * (1 - after / 7))
    assert f"{after} of 7 fenceable cores" in found.reason


@pytest.mark.parametrize(
    ("millis", "told", "rule", "expected"),
    [
        (13_000, 0, "contention", 0),
        (14_000, 0, "contention", 0),
        (14_001, 0, "fence_full", 0),
        (12_000, 0, "contention", 100 / 7),
        (1000, 7, "fence_full", 0),
        (1000, 6, "contention", 0),
    ],
)
def test_what_does_not_fit_into_the_budget_has_no_points(millis, told, rule, expected):
    found = points(Tier.CRITICAL, millis, facts(fenced_cores=told))

    assert (found.rule, found.points) == (rule, pytest.approx(expected, abs=1e-9))


def test_a_node_with_one_core_can_fence_nothing():
    found = points(Tier.CRITICAL, 1000, facts(budget_cores=0))

    assert (found.rule, found.points) == ("fence_full", 0)


@pytest.mark.parametrize("tier", PACKING)
@pytest.mark.parametrize(
    ("millis", "there", "told", "expected"),
    [
        (0, [], 0, 0),
        (1600, [], 0, 10),
        (1000, [(Tier.NORMAL, 3000)], 0, 25),
        (1000, [(Tier.NORMAL, 3000)], 7000, 50),
        (16_000, [], 0, 100),
    ],
)
def test_a_packing_pod_goes_where_requests_are_dense(tier, millis, there, told, expected):
    found = points(tier, millis, facts(tier_millis=told), bound(*there))

    assert (found.rule, found.points) == ("packing", pytest.approx(expected))


@pytest.mark.parametrize("tier", [Tier.CRITICAL, Tier.BACKGROUND])
@pytest.mark.parametrize(("told", "bound_millis"), [(0, 14_001), (14_001, 0), (14_001, 3000)])
def test_a_node_without_room_for_the_requests_has_no_points(tier, told, bound_millis):
    there = bound((Tier.NORMAL, bound_millis))

    found = points(tier, 2000, facts(tier_millis=told), there)

    assert (found.rule, found.points) == ("node_full", 0)
    assert found.reason == "requests would be 16001m of 16000m: no room"


def test_to_a_normal_pod_all_nodes_are_equal():
    nodes = [facts(), facts(mode="safe_mode"), facts(mode=""), facts(told_at=0.0)]

    assert {points(Tier.NORMAL, node=node).points for node in nodes} == {50}


def test_a_system_pod_fences_nothing():
    found = score(demand(Tier.CRITICAL, is_system=True), facts(mode="safe_mode"), NOTHING, NOW)

    assert (found.rule, found.points) == ("system_pod", 50)


def test_pods_of_the_system_layer_take_no_cores_but_count_as_requests():
    there = type(NOTHING).of([demand(Tier.CRITICAL, 9000, is_system=True)])

    assert points(Tier.CRITICAL, 1000, there=there).inputs["fenced_after"] == 1
    assert points(Tier.LOW, 1000, there=there).inputs["requests_after"] == 10_000


@pytest.mark.parametrize(
    ("changes", "fencing", "packing"),
    [
        ({"mode": ""}, ("no_agent", 0), ("no_agent", 50)),
        ({"mode": "", "told_at": 0.0}, ("no_agent", 0), ("no_agent", 50)),
        ({"mode": "safe_mode"}, ("not_enforcing", 0), ("packing", 6.25)),
        ({"mode": "observe_only"}, ("not_enforcing", 0), ("packing", 6.25)),
        ({"mode": "safe_mode", "told_at": None}, ("not_enforcing", 0), ("undated", 50)),
        ({"mode": "safe_mode", "told_at": 0.0}, ("old", 50), ("old", 50)),
        ({"mode": "reloading"}, ("contention", 100 * 6 / 7), ("packing", 6.25)),
        ({"mode": "enforcing?"}, ("not_enforcing", 0), ("packing", 6.25)),
        ({"told_at": None}, ("undated", 50), ("undated", 50)),
        ({"budget_cores": None}, ("no_budget", 50), ("packing", 6.25)),
        ({"core_cpus": None}, ("no_budget", 50), ("packing", 6.25)),
        ({"fenced_cores": None}, ("contention", 100 * 6 / 7), ("packing", 6.25)),
        ({"allocatable_millis": None}, ("contention", 100 * 6 / 7), ("no_allocatable", 50)),
    ],
)
def test_what_is_not_known_is_neutral_and_what_is_not_fenced_is_worth_nothing(
    changes, fencing, packing
):
    critical = points(Tier.CRITICAL, node=facts(**changes))
    background = points(Tier.BACKGROUND, node=facts(**changes))

    assert (critical.rule, critical.points) == (fencing[0], pytest.approx(fencing[1]))
    assert (background.rule, background.points) == (packing[0], pytest.approx(packing[1]))


@pytest.mark.parametrize("tier", FENCING + PACKING)
@pytest.mark.parametrize(
    ("age_s", "is_old"),
    [
        (0, False),
        (OLD_AFTER_S, False),
        (OLD_AFTER_S + 1, True),
        (3600, True),
        (-OLD_AFTER_S, False),
        (-OLD_AFTER_S - 1, True),
    ],
)
def test_numbers_count_for_ten_minutes_and_no_clock_is_trusted_further(tier, age_s, is_old):
    found = points(tier, node=facts(told_at=NOW - age_s))

    assert (found.rule == "old") is is_old
    assert not is_old or found.points == 50


@pytest.mark.parametrize(
    ("given_points", "expected"),
    [(0, 0), (4.9, 0), (5, 1), (50, 5), (94.9, 9), (95, 10), (100, 10)],
)
def test_the_scheduler_takes_whole_numbers_up_to_ten(given_points, expected):
    assert Score("node-1", given_points, "packing").extender_score == expected


MILLIS = st.integers(min_value=0, max_value=10**6)
CORES = st.none() | st.integers(min_value=0, max_value=200)
NODES = st.builds(
    facts,
    allocatable_millis=st.none() | MILLIS,
    mode=st.sampled_from(["", "enforcing", "reloading", "safe_mode", "?"]),
    told_at=st.none() | st.floats(min_value=NOW - 2000, max_value=NOW + 2000),
    tier_millis=MILLIS,
    fenced_cores=CORES,
    budget_cores=CORES,
    core_cpus=st.none() | st.integers(min_value=1, max_value=8),
)
PODS = st.lists(st.tuples(st.sampled_from(Tier), MILLIS), max_size=8)
TIERS = st.sampled_from(Tier)


@given(TIERS, MILLIS, NODES, PODS, st.booleans())
@settings(max_examples=150)
def test_every_node_has_from_0_to_100_points_and_a_reason(tier, millis, node, there, is_system):
    found = score(demand(tier, millis, is_system=is_system), node, bound(*there), NOW)

    assert 0 <= found.points <= 100
    assert 0 <= found.extender_score <= 10
    assert "{" not in found.reason


@given(st.sampled_from(FENCING), MILLIS, NODES, PODS, st.integers(min_value=1, max_value=50))
@settings(max_examples=150)
def test_more_that_can_be_fenced_never_makes_a_node_worse(tier, millis, node, there, more):
    larger = facts(**{**_fields(node), "budget_cores": (node.budget_cores or 0) + more})
    before = score(demand(tier, millis), node, bound(*there), NOW)
    after = score(demand(tier, millis), larger, bound(*there), NOW)

    assert node.budget_cores is None or after.points >= before.points


@given(st.sampled_from(FENCING), MILLIS, NODES, PODS, st.sampled_from(FENCING), MILLIS)
@settings(max_examples=150)
def test_more_that_is_fenced_never_makes_a_node_better(tier, millis, node, there, other, more):
    before = score(demand(tier, millis), node, bound(*there), NOW)
    after = score(demand(tier, millis), node, bound(*there, (other, more)), NOW)

    assert after.points <= before.points


@given(st.sampled_from(PACKING), MILLIS, NODES, PODS, MILLIS)
@settings(max_examples=150)
def test_of_two_nodes_with_room_batch_prefers_the_fuller(tier, millis, node, there, more):
    emptier = score(demand(tier, millis), node, bound(*there), NOW)
    fuller = score(demand(tier, millis), node, bound(*there, (Tier.NORMAL, more)), NOW)

    assert fuller.rule == "node_full" or fuller.points >= emptier.points


@given(st.sampled_from(FENCING), MILLIS, MILLIS, NODES, PODS)
@settings(max_examples=150)
def test_a_larger_pod_is_never_better_off(tier, millis, more, node, there):
    smaller = score(demand(tier, millis), node, bound(*there), NOW)
    larger = score(demand(tier, millis + more), node, bound(*there), NOW)

    assert larger.points <= smaller.points


def _fields(node):
    names = ("allocatable_millis", "mode", "told_at", "tier_millis", "fenced_cores", "core_cpus")
    return {name: getattr(node, name) for name in names}
