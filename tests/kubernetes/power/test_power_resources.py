"""The kinds of the plugin power, in a real API server, by the real kubectl."""

import copy
import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from temper_core import Pod
from temper_plugin_power.commands.power import command
from temper_plugin_power.workloads.energy import Dialect
from temper_plugin_power.workloads.pods import MeasuredPod, PodMeasures
from temper_plugin_power.workloads.profiling import profile_workloads

NOW = datetime(2026, 11, 26, 8, 15, 4, tzinfo=UTC)
GROUP = "/apis/joulie.io/v1alpha1"
PROFILES = f"{GROUP}/namespaces/shop/workloadprofiles"
TWIN = {
    "apiVersion": "joulie.io/v1alpha1",
    "kind": "NodeTwin",
    "metadata": {"name": "node.with.dots"},
    "spec": {
        "nodeName": "node.with.dots",
        "profile": "eco",
        "cpu": {"packagePowerCapPctOfMax": 60},
        "gpu": {"powerCap": {"scope": "perGpu", "capPctOfMax": 62.5}},
    },
}


def a_profile_object():
    measures = PodMeasures(1, 2, 90, 4, 5, 6, 7, 8, 9, 0.1, 0.2, 0.3, 5, 0.5)
    annotations = {"joulie.io/reschedulable": "true"}
    pod = Pod("1", "shop", "web-0", owner="StatefulSet/web", annotations=annotations)
    measured = MeasuredPod(pod, "n1", "", measures)
    (profile,) = profile_workloads([measured], dialect=Dialect.OLD, window_s=600)
    return json.loads(json.dumps(profile.as_object(NOW)))


def written(cluster, document, path=PROFILES):
    """Make an object and its status. Return the answer to the status."""
    name = document["metadata"]["name"]
    cluster.client.delete(f"{path}/{name}").close()
    made = cluster.client.post(path, json=document)
    if made.status_code != 201:
        return made
    change = {"status": document.get("status", {})}
    headers = {"Content-Type": "application/merge-patch+json"}
    return cluster.client.patch(f"{path}/{name}/status", json=change, headers=headers)


def test_what_the_classifier_writes_is_kept_as_it_is(cluster):
    document = a_profile_object()

    answer = written(cluster, document)

    assert answer.status_code == 200, answer.text
    assert answer.json()["spec"] == document["spec"]
    assert answer.json()["status"] == document["status"]


def test_kubectl_prints_the_columns_by_the_short_name(cluster, kubectl):
    written(cluster, a_profile_object())

    head, line = kubectl("get", "wp", "statefulset-web").splitlines()

    assert head.split() == [
        *("NAME", "NODE", "CRITICALITY", "CPU-BOUND", "GPU-BOUND", "RESCHEDULABLE"),
        *("CONFIDENCE", "AGE"),
    ]
    assert line.split()[:6] == ["statefulset-web", "n1", "standard", "mixed", "compute", "true"]


def test_applying_the_list_of_the_classifier_makes_the_objects(kubectl):
    document = {"apiVersion": "v1", "kind": "List", "items": [a_profile_object()]}

    kubectl("apply", "-f", "-", given=json.dumps(document))

    assert "statefulset-web" in kubectl("get", "workloadprofiles", "-o", "name")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status.criticality.class", "gold"),
        ("status.cpu.bound", "none"),
        ("status.cpu.capSensitivity", "none"),
        ("status.gpu.bound", "io"),
        ("status.confidence", 1.1),
        ("status.confidence", "high"),
        ("status.migratability.reschedulable", "true"),
        ("status.evidence.dialect", "kepler"),
        ("status.evidence.pods", 1.5),
        ("status.lastUpdated", "yesterday"),
        ("spec.workloadRef.name", None),
        ("spec.workloadRef.kind", None),
    ],
)
def test_the_api_server_refuses_what_is_no_profile(cluster, path, value):
    document = a_profile_object()
    _set(document, path, value)

    answer = written(cluster, document)

    assert answer.status_code == 422, answer.text
    assert path.rpartition(".")[2] in answer.json()["message"]


@pytest.mark.parametrize(
    ("path", "value", "status_code"),
    [
        ("spec.profile", "eco", 200),
        ("spec.profile", "fast", 422),
        ("spec.profile", None, 422),
        ("spec.nodeName", None, 422),
        ("spec.cpu.packagePowerCapPctOfMax", 0, 422),
        ("spec.cpu.packagePowerCapPctOfMax", 0.1, 200),
        ("spec.cpu.packagePowerCapPctOfMax", 100, 200),
        ("spec.cpu.packagePowerCapPctOfMax", 100.1, 422),
        ("spec.cpu.packagePowerCapWatts", 0.9, 422),
        ("spec.cpu.packagePowerCapWatts", 1, 200),
        ("spec.gpu.powerCap.capWattsPerGpu", 0, 422),
        ("spec.gpu.powerCap.capPctOfMax", 0, 422),
    ],
)
def test_the_caps_of_a_twin_have_bounds(cluster, path, value, status_code):
    document = copy.deepcopy(TWIN)
    _set(document, path, value)

    answer = written(cluster, document, f"{GROUP}/nodetwins")

    assert answer.status_code == status_code, answer.text


@pytest.fixture
def _capped(cluster):
    """Make the node ``capped`` for one test."""
    cluster.node("capped")
    yield
    cluster.without_node("capped")


@pytest.mark.usefixtures("_capped")
def test_what_kubectl_prints_of_a_cluster_is_scored(cluster, kubectl, tmp_path):
    twin = copy.deepcopy({**TWIN, "metadata": {"name": "capped"}})
    twin["spec"]["nodeName"] = "capped"
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    twin["status"] = {"schedulableClass": "eco", "lastUpdated": now}
    assert written(cluster, twin, f"{GROUP}/nodetwins").status_code == 200
    profile = a_profile_object()
    profile["status"]["criticality"]["class"] = "performance"
    assert written(cluster, profile).status_code == 200
    owner = {"kind": "StatefulSet", "name": "web", "controller": True}
    metadata = {"name": "web-1", "namespace": "shop", "ownerReferences": [owner]}
    pod = {"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "app"}]}}
    (tmp_path / "pod.json").write_text(json.dumps(pod))

    kinds = "nodes,nodetwins,nodehardwares,workloadprofiles"
    printed = kubectl("get", kinds, "-A", "-o", "json")
    arguments = ["score", str(tmp_path / "pod.json"), "--objects", "-", "--output", "json"]
    done = CliRunner().invoke(command, arguments, input=printed)

    capped = next(each for each in json.loads(done.stdout) if each["node"] == "capped")
    assert capped["terms"]["base"] == 60
    assert capped["rejected"].endswith("(class from profile shop/statefulset-web)")


def _set(document, path, value):
    """Set the value at a path of keys, or take the key away for None."""
    *tables, key = path.split(".")
    for table in tables:
        document = document.setdefault(table, {})
    if value is None:
        del document[key]
    else:
        document[key] = value
