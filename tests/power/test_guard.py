"""When a node may become an eco node."""

import pytest

from temper_plugin_power.classifier.hints import Hints, read_hints
from temper_plugin_power.operating.buckets import Bucket, bucket_of
from temper_plugin_power.operating.caps import CapShares, caps_of
from temper_plugin_power.operating.guard import (
    Cause,
    NodePod,
    State,
    Transition,
    blocking_cause,
    transition,
)
from temper_plugin_power.operating.twin import Hardware
from tests.power.made import a_profile

KEY = "joulie.io/power-profile"
CLASS = "joulie.io/workload-class"


def affinity(operator, *values, key=KEY):
    """Return a pod's spec that requires nodes by one expression."""
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


@pytest.mark.parametrize(
    ("annotations", "spec", "bucket"),
    [
        ({}, {}, "general"),
        ({CLASS: "performance"}, {}, "performance-only"),
        ({CLASS: " performance\n"}, {}, "performance-only"),
        ({CLASS: "standard"}, {}, "general"),
        ({}, {"nodeSelector": {KEY: "performance"}}, "performance-only"),
        ({}, {"nodeSelector": {KEY: "eco"}}, "eco-only"),
        ({}, {"nodeSelector": {"zone": "eco"}}, "general"),
        ({}, affinity("NotIn", "eco"), "performance-only"),
        ({}, affinity("NotIn", "performance"), "general"),
        ({}, affinity("In", "performance"), "performance-only"),
        ({}, affinity("In", "performance", "eco"), "general"),
        ({}, affinity("In", "eco"), "eco-only"),
        ({}, affinity("Exists"), "general"),
        ({}, affinity("In", "a", key="zone"), "general"),
        ({CLASS: "performance"}, {"nodeSelector": {KEY: "eco"}}, "performance-only"),
        ({}, {"nodeSelector": 3, "affinity": {"nodeAffinity": []}}, "general"),
    ],
)
def test_annotation_and_constraints_decide_the_bucket(annotations, spec, bucket):
    assert bucket_of(annotations, spec, read_hints(annotations, {}), None) == bucket


@pytest.mark.parametrize(
    ("annotations", "spec", "bucket"),
    [
        ({}, {}, "performance-only"),
        ({CLASS: "standard"}, {}, "general"),
        ({}, {"nodeSelector": {KEY: "eco"}}, "eco-only"),
    ],
)
def test_the_profile_decides_where_a_pod_says_nothing(annotations, spec, bucket):
    hints = read_hints(annotations, {})

    assert bucket_of(annotations, spec, hints, a_profile("performance")) == bucket
    assert bucket_of({}, {}, Hints(), a_profile("standard")) == "general"


MOVABLE = ("migratability.reschedulable",)


@pytest.mark.parametrize(
    ("pod", "cause"),
    [
        ({}, None),
        ({"bucket": Bucket.ECO}, None),
        ({"bucket": Bucket.PERFORMANCE}, Cause.CONSTRAINT),
        ({"bucket": Bucket.PERFORMANCE, "hints": Hints(reschedulable=True)}, Cause.CONSTRAINT),
        ({"profile": a_profile("performance")}, Cause.CLASS),
        ({"profile": a_profile("performance", confidence=0.3)}, Cause.CLASS),
        ({"profile": a_profile("performance"), "hints": Hints(reschedulable=True)}, Cause.CLASS),
        ({"profile": a_profile("performance"), "hints": Hints(workload_class="standard")}, None),
        ({"hints": Hints(reschedulable=False)}, Cause.NOT_MOVABLE),
        ({"hints": Hints(reschedulable=True)}, None),
        ({"profile": a_profile()}, None),
        ({"profile": a_profile(hints=MOVABLE, confidence=0.3)}, Cause.NOT_MOVABLE),
        ({"profile": a_profile(hints=None)}, Cause.NOT_MOVABLE),
        ({"profile": a_profile(hints=None, reschedulable=True)}, None),
        ({"profile": a_profile(hints=None), "hints": Hints(reschedulable=True)}, None),
        ({"hints": Hints(reschedulable=False), "is_bound_to_node": True}, None),
        ({"bucket": Bucket.PERFORMANCE, "is_bound_to_node": True}, Cause.CONSTRAINT),
    ],
)
def test_a_pod_blocks_by_constraint_class_or_an_explicit_word(pod, cause):
    assert blocking_cause(NodePod(**{"bucket": Bucket.GENERAL, "hints": Hints(), **pod})) is cause


@pytest.mark.parametrize(
    ("desired", "in_force", "blocking", "kept", "draining", "state"),
    [
        ("performance", "eco", 0, "performance", False, State.PERFORMANCE),
        ("performance", "eco", None, "performance", False, State.PERFORMANCE),
        ("eco", "performance", 2, "performance", True, State.DRAINING),
        ("eco", "performance", 0, "eco", False, State.ECO),
        ("eco", "unknown", 1, "performance", True, State.DRAINING),
        ("eco", "eco", 1, "eco", True, State.DRAINING),
        ("eco", "eco", 0, "eco", False, State.ECO),
        ("eco", "performance", None, "performance", True, State.DRAINING),
        ("eco", "eco", None, "eco", False, State.ECO),
        ("odd", "performance", 0, "performance", False, State.UNKNOWN),
    ],
)
def test_eco_is_in_force_after_the_last_blocking_pod_only(
    desired, in_force, blocking, kept, draining, state
):
    assert transition(desired, in_force, blocking) == Transition(desired, kept, draining, state)


@pytest.mark.parametrize(
    ("profile", "has_gpu", "caps"),
    [
        ("performance", False, {"cpu": {"packagePowerCapPctOfMax": 100}}),
        ("eco", False, {"cpu": {"packagePowerCapPctOfMax": 60}}),
        ("performance", True, {"gpu": {"powerCap": {"scope": "perGpu", "capPctOfMax": 100}}}),
        ("eco", True, {"gpu": {"powerCap": {"scope": "perGpu", "capPctOfMax": 60}}}),
    ],
)
def test_a_node_with_gpus_gets_no_cpu_cap(profile, has_gpu, caps):
    assert caps_of(profile, CapShares(), Hardware(has_gpu=has_gpu)) == caps


@pytest.mark.parametrize("has_gpu", [True, False])
def test_a_share_of_nothing_is_no_cap(has_gpu):
    assert caps_of("eco", CapShares(cpu_eco_pct=0, gpu_eco_pct=-1), Hardware(has_gpu=has_gpu)) == {}
