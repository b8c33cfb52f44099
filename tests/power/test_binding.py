"""Which pods can be nowhere else, and which no node rejects."""

import pytest

from temper_plugin_power.operating.binding import is_bound_to_node, names_its_node
from temper_plugin_power.placing.exempting import is_exempt
from tests.power.made import affinity, naming, term


@pytest.mark.parametrize(
    ("terms", "names_one"),
    [
        ([term("n1")], True),
        ([term("n1"), term("n1")], True),
        ([{**term("n1"), "matchExpressions": [{"key": "a", "operator": "Exists"}]}], True),
        ([term("n1"), term("n2")], False),
        ([term("n1"), {"matchExpressions": [{"key": "a", "operator": "Exists"}]}], False),
        ([term("n1", operator="NotIn")], False),
        ([term("n1", key="metadata.namespace")], False),
        ([term("n1", "n2")], False),
        ([term(7)], False),
        ([term([])], False),
        ([{"matchFields": None}], False),
        ([{}], False),
        ([], False),
        (None, False),
    ],
)
def test_a_pod_names_its_node_if_every_term_has_the_name_of_the_same_one(terms, names_one):
    assert names_its_node(affinity(terms)) is names_one


def test_a_preference_for_a_node_binds_no_pod():
    weighted = [{"weight": 100, "preference": term("n1")}]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}

    assert not names_its_node({"affinity": {"nodeAffinity": preferred}})


@pytest.mark.parametrize(
    ("annotations", "owner", "spec", "is_bound"),
    [
        ({"kubernetes.io/config.mirror": "1"}, "Node", {}, True),
        ({}, "DaemonSet", {}, True),
        ({}, "Job", naming("n1"), True),
        ({}, "ReplicaSet", {}, False),
        ({}, "", {"nodeSelector": {"kubernetes.io/hostname": "n1"}}, False),
    ],
)
def test_a_pod_is_bound_by_its_kind_or_by_the_name_of_a_node(annotations, owner, spec, is_bound):
    assert is_bound_to_node(annotations, owner, spec) is is_bound


@pytest.mark.parametrize(
    ("spec", "exempt"),
    [
        (naming("n1"), True),
        ({"priority": 2_000_000_000}, True),
        ({"priority": 2_000_001_000, "priorityClassName": "system-node-critical"}, True),
        ({"priorityClassName": "system-node-critical"}, True),
        ({"priorityClassName": "system-cluster-critical"}, True),
        ({"priority": 1_000_000_000}, False),
        ({"priority": 1_000, "priorityClassName": "system-node-critical"}, False),
        ({"priority": True}, False),
        ({"priority": "2000001000"}, False),
        ({"priorityClassName": "temper-critical"}, False),
        ({"priorityClassName": ["system-node-critical"]}, False),
        ({}, False),
    ],
)
def test_a_pod_is_exempt_by_what_the_scheduler_obeys_itself(spec, exempt):
    assert is_exempt(spec) is exempt
