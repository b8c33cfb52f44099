"""``temper power score``: the objects of a cluster in, every term out."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, Pod
from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.classifier.signals import Signals
from temper_plugin_power.commands.power import command
from temper_plugin_power.commands.score import score_nodes
from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.placing.subjects import NodeView
from temper_plugin_power.placing.views import cluster_view
from temper_plugin_power.resources.fields import number_at
from temper_plugin_power.resources.reading import profile_at
from temper_plugin_power.workloads.owners import Workload
from tests.power.made import naming

KEY = "joulie.io/power-profile"


def now():
    """Return the time at the call: the file may be read long before its tests run."""
    return datetime.now(UTC)


def a_twin(name, node_class="performance", cpu_pct=100, age_s=0):
    """Return a NodeTwin whose numbers are whole, as JSON often has them."""
    return {
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "profile": "eco"},
        "status": {
            "schedulableClass": node_class,
            "predictedPowerHeadroomScore": 80,
            "predictedCoolingStressScore": 20.0,
            "predictedPsuStressScore": 10,
            "effectiveCapState": {"cpuPct": cpu_pct, "gpuPct": 100},
            "hardwareDensityScore": 50,
            "estimatedPUE": 1.1,
            "lastUpdated": (now() - timedelta(seconds=age_s)).isoformat(),
        },
    }


HARDWARE = {
    "kind": "NodeHardware",
    "metadata": {"name": "n1"},
    "status": {
        "cpu": {"sockets": 2, "totalCores": 100, "capRange": {"maxWattsPerSocket": 500}},
        "gpu": {"present": True, "count": 4, "capRangePerGpu": {"maxWatts": 700}},
    },
}
PROFILE = {
    "kind": "WorkloadProfile",
    "metadata": {"name": "deployment-web", "namespace": "shop"},
    "spec": {"workloadRef": {"kind": "Deployment", "name": "web"}},
    "status": {
        "criticality": {"class": "performance"},
        "cpu": {"intensity": "high", "bound": "compute", "capSensitivity": "high"},
        "confidence": 0.7,
        "hints": [],
    },
}


def a_pod(namespace="shop", **annotations):
    """Return a pod of a new ReplicaSet of the Deployment ``web``."""
    owner = {"kind": "ReplicaSet", "name": "web-77f", "controller": True}
    return {
        "kind": "Pod",
        "metadata": {
            "name": "web-77f-abc",
            "namespace": namespace,
            "labels": {"pod-template-hash": "77f"},
            "annotations": {f"joulie.io/{key}": value for key, value in annotations.items()},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "10"}}}]},
    }


def scored(tmp_path, pod, objects, *options):
    """Run the command. Return its result."""
    files = [tmp_path / "pod.json", tmp_path / "objects.json"]
    for file, document in zip(files, (pod, {"kind": "List", "items": objects}), strict=True):
        file.write_text(json.dumps(document))
    arguments = ["score", str(files[0]), "--objects", str(files[1]), *options]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def rows(done):
    return {row["node"]: row for row in json.loads(done.stdout)}


def test_every_term_of_every_node_is_shown(tmp_path):
    objects = [a_twin("n1"), HARDWARE, a_twin("n2", "eco", cpu_pct=60)]
    pod = a_pod(**{"cpu-sensitivity": "medium"})

    done = scored(tmp_path, pod, objects, "--output", "json")

    terms = rows(done)["n1"]["terms"]
    assert terms["base"] == pytest.approx(83)
    assert terms["class"] == pytest.approx(-6)
    assert terms["marginal"] == pytest.approx(-(3.5 + 1.4 * 0.6 + 0.14 * 0.4 + 20))
    assert rows(done)["n1"]["score"] == 52
    assert rows(done)["n2"]["terms"]["sensitivity"] == pytest.approx(-8)
    assert rows(done)["n2"]["score"] == 85
    assert done.return_value == 0


def test_the_best_node_comes_first_and_those_that_refuse_last(tmp_path):
    objects = [a_twin("eco", "eco"), a_twin("far", age_s=3600), a_twin("good")]

    done = scored(tmp_path, a_pod(**{"workload-class": "performance"}), objects)

    head, *lines = done.stdout.splitlines()
    assert head.split()[:2] == ["NODE", "SCORE"]
    assert [line.split()[:2] for line in lines] == [["good", "98"], ["far", "50"], ["eco", "83"]]
    assert lines[-1].endswith("rejected from eco/draining node (class from annotation)")


def test_a_pod_that_can_be_nowhere_else_is_rejected_nowhere(tmp_path):
    pod = a_pod(**{"workload-class": "performance"})
    pod["spec"] |= naming("eco")

    done = scored(tmp_path, pod, [a_twin("eco", "eco")], "--output", "json")

    assert "rejected" not in rows(done)["eco"]
    assert done.return_value == 0


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (a_pod(), "(class from profile shop/deployment-web)"),
        (a_pod(**{"workload-class": "standard"}), None),
        (a_pod("other"), None),
    ],
)
def test_the_profile_of_the_workload_stands_in_for_an_annotation(tmp_path, pod, reason):
    done = scored(tmp_path, pod, [PROFILE, a_twin("n1", "eco")], "--output", "json")

    rejected = rows(done)["n1"].get("rejected")
    assert (rejected is None) == (reason is None)
    assert (rejected or "").endswith(reason or "")
    assert done.return_value == (reason is not None)


def test_the_label_of_a_node_counts_where_it_has_no_twin(tmp_path):
    node = {"kind": "Node", "metadata": {"name": "n1", "labels": {KEY: "eco"}}}

    done = scored(tmp_path, a_pod(**{"workload-class": "performance"}), [node], "-o", "json")

    assert "label fallback" in rows(done)["n1"]["rejected"]
    assert rows(done)["n1"]["score"] == 50


@pytest.mark.parametrize("pod", [3, {"kind": "List", "items": []}, {"kind": "Node"}])
def test_a_file_without_a_pod_is_refused(tmp_path, pod):
    with pytest.raises(DocumentError, match=r"pod\.json: "):
        scored(tmp_path, pod, [])


def test_objects_are_read_whatever_their_numbers_are_written_as():
    twin = a_twin("n1")
    view = cluster_view([twin, HARDWARE], datetime.fromisoformat(twin["status"]["lastUpdated"]))

    assert view.nodes["n1"] == NodeView(
        Twin("performance", 80, 20, 10, 100, 100, 50, 1.1),
        0.0,
        Hardware(2, 100, 500, has_gpu=True, gpus=4, max_watts_per_gpu=700),
    )


@pytest.mark.parametrize("value", [10**400, float("nan"), float("inf"), True, "80", None])
def test_what_is_no_number_counts_as_absent(value):
    assert number_at({"status": {"cpuPct": value}}, "status.cpuPct") == 0.0


def test_a_profile_that_was_written_is_read_back():
    made = classify(Hints(cpu_sensitivity="low"), Signals(cpu_util_pct=90, gpu_util_pct=30))

    assert profile_at({"status": made.status(now())}) == made


def test_a_profile_without_hints_was_made_by_hand():
    document = {**PROFILE, "status": {"migratability": {"reschedulable": True}}}

    view = cluster_view([document], now())

    profile = view.profiles[Workload("shop", "Deployment", "web")]
    assert (profile.hints, profile.workload_class, profile.reschedulable) == (
        None,
        "standard",
        True,
    )


keys = st.sampled_from(
    [
        *("metadata", "name", "labels", "spec", "status", "nodeName", "workloadRef", "cpu", "gpu"),
        *("capRange", "maxWattsPerSocket", "sockets", "lastUpdated", "effectiveCapState"),
        *("cpuPct", "hints", "confidence", "count", "present", KEY),
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=15,
)
kinds = st.sampled_from(["Node", "NodeTwin", "NodeHardware", "WorkloadProfile"])
odd_objects = st.builds(
    lambda kind, inner: {**inner, "kind": kind},
    kinds,
    st.dictionaries(keys, json_values, max_size=5),
)


@given(st.lists(odd_objects | json_values, max_size=4))
def test_no_object_crashes_the_view(objects):
    view = cluster_view(objects, now())

    for each in score_nodes(view.pod_view(Pod("1", "shop", "web"), {}), view):
        assert each.score.points in range(101)
