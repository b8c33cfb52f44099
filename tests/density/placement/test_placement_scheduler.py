"""A real kube-scheduler asks a running extender: pods land where the scores say."""

from collections import Counter

import pytest

from temper_core import Tier
from tests.density.placement.yard import Yard, documented_configuration

BY_OBJECTS = "temper-by-objects"


@pytest.fixture(scope="module")
def scheduled(cluster, tmp_path_factory):
    yard = Yard(cluster, tmp_path_factory.mktemp("yard"))
    try:
        yard.start_scheduler("temper-scheduler")
        yard.start_extender()
        yield yard
    finally:
        yard.close()


@pytest.fixture
def yard(scheduled):
    yield scheduled
    scheduled.clear()


def fullness(yard, *filled):
    """Make nodes of 16 CPUs with so many of them requested."""
    nodes = {}
    for cpu in filled:
        nodes[cpu] = yard.node(f"has-{cpu}")
        if cpu:
            yard.bind(nodes[cpu], str(cpu))
    return nodes


def test_a_critical_pod_goes_to_the_enforcing_node_with_the_emptiest_fence(yard):
    yard.node("three", fenced_cores="3")
    emptiest = yard.node("one", fenced_cores="1")
    yard.node("idle", agent_mode="safe_mode")
    yard.node("without", agent_mode="")

    assert {yard.place(Tier.CRITICAL, "1") for _ in range(3)} == {emptiest}


def test_requests_alone_do_not_move_a_critical_pod(yard):
    nodes = fullness(yard, 10, 0)
    yard.cluster.annotate(nodes[0], fenced_cores="4")

    assert yard.place(Tier.HIGH, "1") == nodes[10]


def test_background_goes_to_the_fullest_node_that_has_room(yard):
    nodes = fullness(yard, 15, 10, 2)

    placed = [yard.place(Tier.BACKGROUND, "2") for _ in range(3)]

    assert placed == [nodes[10]] * 3


def test_normal_pods_are_left_to_the_scheduler(yard):
    nodes = fullness(yard, 12, 0)

    assert yard.place(Tier.NORMAL, "1") == nodes[0]


def test_a_burst_of_critical_pods_moves_on_before_any_agent_has_told_of_it(yard):
    emptiest = yard.node("zero")
    for name in ("a", "b", "c"):
        yard.node(name, fenced_cores="3")

    names = [yard.submit(Tier.CRITICAL, "1500m") for _ in range(20)]
    pods = Counter(yard.where(name) for name in names)

    # By what the agents told, all of them would have gone to the first.
    assert len(pods) == 4
    assert 3 <= pods[emptiest] <= 10


def test_what_was_answered_for_a_pod_explains_where_it_is(yard):
    for name in "abc":
        yard.node(name)

    names = [yard.submit(Tier.CRITICAL, "1") for _ in range(9)]
    placed = {name: yard.where(name) for name in names}

    for name, node in placed.items():
        said = yard.explained(f"shop/{name}")
        scores = {each["node"]: each["score"] for each in said["nodes"]}
        assert said["source"] == "what the scheduler was answered"
        assert said["bound_to"] == node
        assert scores[node] == max(scores.values())


def test_a_scheduler_that_sends_whole_nodes_is_answered_the_same(yard):
    yard.start_scheduler(BY_OBJECTS, nodeCacheCapable=False)
    yard.node("three", fenced_cores="3")
    emptiest = yard.node("one", fenced_cores="1")

    assert {yard.place(Tier.CRITICAL, "1", BY_OBJECTS) for _ in range(2)} == {emptiest}


def test_pods_are_placed_although_the_extender_does_not_answer(yard):
    nodes = {yard.node("one"), yard.node("other")}
    yard.extender.pause()
    try:
        assert yard.place(Tier.CRITICAL, "1") in nodes
    finally:
        yard.extender.go_on()


def test_pods_are_placed_although_the_extender_is_gone(yard):
    emptiest = yard.node("one")
    yard.node("three", fenced_cores="3")

    code = yard.extender.stop()
    alone = yard.place(Tier.CRITICAL, "1")
    yard.start_extender()
    together = yard.place(Tier.CRITICAL, "1")

    assert code == 0
    assert alone
    assert together == emptiest


def test_the_documented_configuration_lets_the_scheduler_go_on_alone():
    (extender,) = documented_configuration()["extenders"]

    assert extender["ignorable"] is True
    assert extender["nodeCacheCapable"] is True
    assert {"filterVerb", "bindVerb", "preemptVerb"}.isdisjoint(extender)
