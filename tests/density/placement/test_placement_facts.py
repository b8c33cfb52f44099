"""What is read of Node and Pod objects: everything that is there, and whatever else is written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import Tier
from temper_core.testing import make_machine, make_snapshot
from temper_plugin_density.placement import facts as read
from temper_plugin_density.placement.facts import read_node
from temper_plugin_density.placement.scoring import score
from temper_plugin_kubernetes.annotations import annotations_of
from tests.density.placement.made import (
    NOW,
    READER,
    bound,
    demand,
    node_object,
    pod_object,
    rfc3339,
    told,
)

NUMBERS = (read.FENCED, read.BUDGET, read.CORE_CPUS, *read.TIER_MILLIS.values())
KEYS = (read.MODE, read.UPDATED, *NUMBERS)


def test_what_the_agent_tells_is_read():
    annotations = told(
        NOW, fenced_cores="2", tier_critical_cpu_millis="3500", tier_low_cpu_millis="4"
    )

    node = read_node(node_object("node-7", "15890m", **annotations))

    assert (node.name, node.allocatable_millis, node.mode) == ("node-7", 15_890, "enforcing")
    assert (node.fenced_cores, node.budget_cores, node.core_cpus) == (2, 7, 2)
    assert (node.told_at, node.tier_millis, node.problems) == (NOW, 3504, ())


def test_every_annotation_that_is_read_is_one_that_agents_write():
    told_of = annotations_of(make_snapshot(machine=make_machine(8, 2)))
    written = {**told_of.standing, **told_of.moving}

    node = read_node({"metadata": {"name": "node-1", "annotations": written}})

    assert set(KEYS) <= set(written)
    assert (node.is_enforcing, node.budget_cores, node.core_cpus) == (True, 7, 2)
    assert rfc3339(node.told_at) == written[read.UPDATED]
    assert node.problems == ()


def test_a_node_without_an_agent_says_only_how_large_it_is():
    node = read_node({"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "4"}}})

    assert (node.allocatable_millis, node.mode, node.told_at, node.problems) == (4000, "", None, ())


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"metadata": None},
        {"metadata": {"name": ""}},
        {"metadata": {"name": 7}},
        {"metadata": ["name"]},
    ],
)
def test_what_has_no_name_is_no_node(item):
    assert read_node(item) is None


@pytest.mark.parametrize("text", ["", "-1", "1.5", "0x10", "1 ", "٣", "1" * 16, "NaN", "7m"])
@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_that_is_none_is_as_if_it_were_not_there_and_is_named(key, text):
    node = read_node({"metadata": {"name": "node-1", "annotations": {key: text}}})

    assert (node.fenced_cores, node.budget_cores, node.core_cpus) == (None, None, None)
    assert node.problems == (f"{key} is not a whole number: {text!r}",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-21",
        "2026-11-21T10:00:00",
        "2026-13-01T10:00:00Z",
        "1790000000",
        "9999-01-01T00:00:00Z",
        "2026-11-21T25:00:00Z",
        "2026-11-21T10:00:00+99:00",
        "٢026-11-21T10:00:00Z",
    ],
)
def test_a_time_that_is_none_is_as_if_it_were_not_there_and_is_named(text):
    node = read_node(node_object(tiers_updated=text))

    assert node.told_at is None
    assert node.problems == (f"{read.UPDATED} is not an RFC 3339 time: {text!r}",)


@pytest.mark.parametrize(
    "text", ["2026-09-21T14:13:20Z", "2026-09-21T16:13:20+02:00", "2026-09-21T14:13:20.0Z"]
)
def test_a_time_may_have_a_zone_and_a_fraction(text):
    assert read_node(node_object(tiers_updated=text)).told_at == NOW


@given(
    st.dictionaries(st.sampled_from(KEYS), st.text(max_size=40) | st.integers() | st.none()),
    st.none() | st.text(max_size=8) | st.integers() | st.lists(st.text()),
    st.sampled_from(Tier),
)
@settings(max_examples=150)
def test_whatever_is_annotated_there_is_a_score(annotations, cpu, tier):
    item = {
        "metadata": {"name": "node-1", "annotations": annotations},
        "status": {"allocatable": {"cpu": cpu}},
    }

    found = score(demand(tier), read_node(item), bound((Tier.HIGH, 1)), NOW)

    assert 0 <= found.points <= 100
    assert found.reason


def test_a_pod_is_read_as_the_agents_read_it():
    sidecar = {
        "name": "mesh",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "100m"}},
    }
    pod = pod_object("db", Tier.CRITICAL, "1500m")
    pod["spec"]["initContainers"] = [sidecar]

    found = READER.demand(pod)

    assert (found.pod, found.tier, found.millis) == ("shop/db", Tier.CRITICAL, 1600)
    assert found.tier_reason == "priority 1000000 (temper-critical) >= critical threshold 1000000"


@pytest.mark.parametrize(("priority", "is_system"), [(1_999_999_999, False), (2_000_000_000, True)])
def test_from_kubernetes_own_classes_on_a_pod_is_one_of_the_system(priority, is_system):
    pod = pod_object("dns", Tier.CRITICAL)
    pod["spec"]["priority"] = priority

    assert READER.demand(pod).is_system is is_system


def test_a_pod_that_is_on_its_way_out_asks_for_nothing():
    leaving = pod_object("web", node="node-1", deletionTimestamp="2026-11-21T10:00:00Z")
    done = {**pod_object("job", node="node-1"), "status": {"phase": "Succeeded"}}

    assert [READER.bound(pod) for pod in (leaving, done, pod_object("waiting"))] == [None] * 3
