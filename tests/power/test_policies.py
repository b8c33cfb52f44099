"""How many nodes are performance nodes, and which."""

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.numbers import half_away
from temper_plugin_power.operating.partition import NodeShape, performance_nodes
from temper_plugin_power.operating.policies import (
    Queue,
    demand_of,
    queue_count,
    static_count,
    swapped_profiles,
    weight,
)
from tests.power.made import a_profile


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.5, 1), (1.5, 2), (2.5, 3), (-0.5, -1), (-2.5, -3), (2.4999, 2), (0.49999999999999994, 0)],
)
def test_halves_are_rounded_away_from_zero_as_in_go(value, rounded):
    assert half_away(value) == rounded


@pytest.mark.parametrize(
    ("nodes", "fraction", "count"),
    [(0, 0.5, 0), (1, 0.5, 1), (5, 0.5, 3), (3, 0.5, 2), (4, 0.3, 1), (10, -1, 0), (10, 7, 10)],
)
def test_a_static_partition_is_a_rounded_share(nodes, fraction, count):
    assert static_count(nodes, fraction) == count


@pytest.mark.parametrize(
    ("nodes", "demand", "queue", "count"),
    [
        (10, 0, Queue(), 6),
        (10, 61, Queue(), 7),
        (10, 60, Queue(), 6),
        (10, 1000, Queue(), 10),
        (10, 0, Queue(base_fraction=0, least=0), 0),
        (10, 0, Queue(base_fraction=0), 1),
        (10, 90, Queue(most=4), 4),
        (10, 0, Queue(base_fraction=0, least=-3), 0),
        (10, 90, Queue(most=0), 9),
        (10, 0, Queue(base_fraction=0, least=5, most=2), 5),
        (10, 3, Queue(base_fraction=0, pods_per_node=0), 3),
        (2, 0, Queue(least=5), 2),
    ],
)
def test_demand_raises_the_count_within_its_bounds(nodes, demand, queue, count):
    assert queue_count(nodes, Fraction(demand), queue) == count


@pytest.mark.parametrize(("intensity", "count"), [("medium", 2), ("high", 3), ("low", 1)])
def test_fourteen_pods_need_more_nodes_the_harder_they_work(intensity, count):
    demand = demand_of([a_profile(cpu=intensity)] * 14)

    assert queue_count(100, demand, Queue(base_fraction=0)) == count


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (None, 1),
        (a_profile(cpu="low"), Fraction(1, 2)),
        (a_profile(cpu="low", gpu="high"), Fraction(3, 2)),
        (a_profile(cpu="high", gpu="low"), Fraction(3, 2)),
        (a_profile(cpu="low", confidence=0.5), Fraction(1, 2)),
        (a_profile(cpu="low", confidence=0.4), 1),
        (a_profile(cpu="low", confidence=0, hints=None), Fraction(1, 2)),
    ],
)
def test_a_profile_weighs_a_pod_if_it_counts(profile, expected):
    assert weight(profile) == expected


intensities = st.sampled_from(["low", "medium", "high"])


@given(st.lists(intensities, min_size=1), st.data())
def test_no_pod_that_works_harder_lowers_the_count(pods, data):
    place = data.draw(st.integers(0, len(pods) - 1))
    harder = [*pods[:place], "high", *pods[place + 1 :]]
    queue = Queue(base_fraction=0, pods_per_node=data.draw(st.integers(1, 5)))

    before, after = (
        queue_count(50, demand_of(a_profile(cpu=each) for each in group), queue)
        for group in (pods, harder)
    )

    assert before <= after


@given(st.integers(0, 300), st.integers(0, 200), st.integers(1, 20))
def test_without_profiles_the_demand_is_the_number_of_pods(pods, nodes, per_node):
    queue = Queue(base_fraction=0, least=0, pods_per_node=per_node)

    assert queue_count(nodes, demand_of([None] * pods), queue) == min(
        nodes, -floor(-pods / per_node)
    )


@pytest.mark.parametrize(
    ("nodes", "now_s", "interval_s", "profiles"),
    [
        (3, 0, 60, "EPP"),
        (3, 59, 60, "EPP"),
        (3, 60, 60, "PEP"),
        (3, 120, 60, "EPP"),
        (1, 0, 60, "E"),
        (1, 60, 60, "P"),
        (2, 60, 0, "PE"),
        (0, 0, 60, ""),
    ],
)
def test_the_first_two_nodes_are_eco_in_turns(nodes, now_s, interval_s, profiles):
    words = {"E": "eco", "P": "performance"}

    assert swapped_profiles(nodes, now_s, interval_s) == [words[each] for each in profiles]


@pytest.mark.parametrize(
    ("shape", "family"),
    [
        ({"has_record": False}, "unknown:n"),
        ({}, "cpu:unknown-cpu"),
        ({"cpu_models": ("", " raw ")}, "cpu:raw"),
        ({"cpu_models": ("EPYC", "raw")}, "cpu:EPYC"),
        ({"cpu_models": ("EPYC",), "gpus": 4}, "gpu:unknown-gpu"),
        ({"gpu_models": ("H100",), "gpus": 4}, "gpu:H100"),
        ({"gpu_models": ("H100",), "cpu_models": ("EPYC",)}, "cpu:EPYC"),
    ],
)
def test_a_family_is_the_model_of_gpu_or_cpu(shape, family):
    assert NodeShape("n", **shape).family == family


NODES = [
    NodeShape("a", 1, ("old",)),
    NodeShape("b", 9, ("new",)),
    NodeShape("c", 9, ("new",)),
    NodeShape("d", 5, ("old",)),
    NodeShape("e", 2, gpu_models=("H100",), gpus=8),
]


@pytest.mark.parametrize(
    ("count", "chosen"),
    [(0, "bde"), (1, "bde"), (3, "bde"), (4, "bcde"), (5, "abcde"), (99, "abcde")],
)
def test_every_family_keeps_its_densest_node_and_the_others_follow(count, chosen):
    assert performance_nodes(NODES, count) == set(chosen)
    assert performance_nodes(NODES[::-1], count) == set(chosen)
