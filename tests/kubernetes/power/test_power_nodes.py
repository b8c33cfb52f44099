"""NodeTwins and labels of nodes, by an operator with a real API server."""

import pytest
from attrs import evolve

from temper_plugin_power.settings.operator import OperatorSettings, ReschedulerSettings
from tests.control_plane.cluster import unique, wait_until
from tests.kubernetes.power.conftest import GROUP, SETTINGS

LABEL = "joulie.io/power-profile"
ECO = evolve(SETTINGS, operator=OperatorSettings(interval="1s", static_hp_frac=0.0))
WRITING = evolve(ECO, operator=evolve(ECO.operator, dry_run=False))


@pytest.fixture
def nodes(yard):
    """Two nodes of one family, of which the policy keeps the first as a performance node."""
    second = unique("znode")
    yard.add_node(second)
    for name in (yard.node, second):
        path = f"{GROUP}/nodehardwares"
        made = {
            "apiVersion": "joulie.io/v1alpha1",
            "kind": "NodeHardware",
            "metadata": {"name": name},
            "spec": {"nodeName": name},
        }
        yard.cluster.call("POST", path, made)
        cpu = {"model": "made", "sockets": 1, "totalCores": 64}
        yard.cluster.client.patch(
            f"{path}/{name}/status",
            json={"status": {"cpu": cpu}},
            headers={"Content-Type": "application/merge-patch+json"},
        ).raise_for_status()
    yield yard.node, second
    yard.cluster.without_node(second)
    for name in (yard.node, second):
        for kind in ("nodetwins", "nodehardwares"):
            yard.cluster.client.delete(f"{GROUP}/{kind}/{name}")


def twin(yard, name):
    answer = yard.cluster.client.get(f"{GROUP}/nodetwins/{name}")
    return answer.json() if answer.status_code == 200 else {}


def label(yard, name):
    return yard.cluster.get("Node", name)["metadata"]["labels"].get(LABEL)


def until(yard, name, **wanted):
    """Wait for the class of a twin."""

    def found():
        document = twin(yard, name)
        status = document.get("status") or {}
        return document if status.get("schedulableClass") == wanted["schedulable"] else None

    return wait_until(found, f"{name} is {wanted}")


def test_nodes_have_twins_and_by_default_no_label(yard, nodes):
    yard.operator(ECO)

    first = until(yard, nodes[0], schedulable="performance")
    second = until(yard, nodes[1], schedulable="eco")

    (owner,) = first["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", nodes[0])
    assert first["spec"]["cpu"] == {"packagePowerCapPctOfMax": 100}
    assert second["spec"]["cpu"] == {"packagePowerCapPctOfMax": 60}
    assert second["status"]["effectiveCapState"] == {"cpuPct": 60, "gpuPct": 100}
    assert [label(yard, name) for name in nodes] == [None, None]


def test_labels_are_written_on_request(yard, nodes):
    yard.operator(WRITING)

    until(yard, nodes[1], schedulable="eco")

    wait_until(lambda: label(yard, nodes[1]) == "eco", "the node is labelled")
    wait_until(lambda: label(yard, nodes[0]) == "performance", "the other one, too")


@pytest.mark.parametrize("hint", ["reschedulable", "workload-class"])
def test_a_node_is_capped_and_labelled_after_its_last_blocking_pod(yard, nodes, hint):
    value = {"reschedulable": "false", "workload-class": "performance"}[hint]
    blocking = yard.run("solver", nodes[1], annotations={f"joulie.io/{hint}": value})
    operator = yard.operator(WRITING)

    draining = until(yard, nodes[1], schedulable="draining")
    wait_until(lambda: label(yard, nodes[1]) == "performance", "the label is kept")
    assert draining["spec"]["cpu"] == {"packagePowerCapPctOfMax": 100}
    assert draining["spec"]["scheduling"] == {"draining": True, "reschedulablePressure": "high"}

    yard.cluster.delete({**blocking, "kind": "Pod"})
    done = until(yard, nodes[1], schedulable="eco")

    assert done["spec"]["cpu"] == {"packagePowerCapPctOfMax": 60}
    wait_until(lambda: label(yard, nodes[1]) == "eco", "the label follows")
    wait_until(
        lambda: "PowerState" in {event["reason"] for event in yard.cluster.events(nodes[1])},
        "an event tells",
    )
    page = operator.page().decode()
    assert f'temper_power_node_state{{node="{nodes[1]}",state="ActiveEco"}} 1.0' in page


def test_a_plain_pod_does_not_keep_a_node(yard, nodes):
    yard.run("plain", nodes[1])
    yard.operator(ECO)

    assert until(yard, nodes[1], schedulable="eco")


def test_a_draining_node_advises_to_move_what_may_be_moved(yard, nodes):
    yard.run("stays", nodes[1], annotations={"joulie.io/reschedulable": "false"})
    yard.run("moves", nodes[1], annotations={"joulie.io/reschedulable": "true"})
    yard.operator(ECO)

    draining = until(yard, nodes[1], schedulable="draining")

    (advice,) = draining["status"]["rescheduleRecommendations"]
    assert advice["workloadRef"]["name"] == "moves"


def test_the_profile_of_a_workload_says_that_it_had_better_move_and_stops_saying_so(yard, nodes):
    blocking = yard.run("stays", nodes[1], annotations={"joulie.io/reschedulable": "false"})
    yard.run("moves", nodes[1], annotations={"joulie.io/reschedulable": "true"})
    yard.operator(ECO)

    def advised(name):
        return (yard.profile(name) or {}).get("status", {}).get("rescheduleReason")

    expected = f"{nodes[1]}: the node drains"
    wait_until(lambda: advised("pod-moves") == expected, "it is advised to move")
    assert yard.profile("pod-moves")["status"]["rescheduleRecommended"] is True
    assert advised("pod-stays") is None

    yard.cluster.delete({**blocking, "kind": "Pod"})

    wait_until(lambda: advised("pod-moves") is None, "the advice goes")
    assert "rescheduleRecommended" not in yard.profile("pod-moves")["status"]


def test_what_the_agent_of_the_node_has_written_stays(yard, nodes):
    yard.operator(ECO)
    until(yard, nodes[1], schedulable="eco")
    control = {"cpu": {"backend": "rapl", "result": "applied"}}
    yard.cluster.client.patch(
        f"{GROUP}/nodetwins/{nodes[1]}/status",
        json={"status": {"controlStatus": control}},
        headers={"Content-Type": "application/merge-patch+json"},
    ).raise_for_status()

    yard.run("late", nodes[1], annotations={"joulie.io/workload-class": "performance"})
    after = wait_until(lambda: twin(yard, nodes[1]), "the twin")

    assert after["status"]["controlStatus"] == control


@pytest.fixture
def owned(yard, nodes):
    """A performance pod of a ReplicaSet that may be moved, and another that may not."""
    container = {"name": "app", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    made = yard.cluster.call(
        "POST",
        f"/apis/apps/v1/namespaces/{yard.namespace}/replicasets",
        {
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "a"}},
                "template": template,
            },
        },
    )
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    performance = {"joulie.io/workload-class": "performance"}
    for name, may_move in (("moves", "true"), ("stays", "false")):
        hints = {**performance, "joulie.io/reschedulable": may_move}
        yard.run(name, nodes[1], annotations=hints, ownerReferences=[owner], labels={"app": "a"})
    return yard


def is_there(yard, name):
    path = f"/api/v1/namespaces/{yard.namespace}/pods/{name}"
    return yard.cluster.client.get(path).status_code == 200


def moving(**options):
    rescheduler = ReschedulerSettings(interval="1s", **options)
    return evolve(ECO, operator=evolve(ECO.operator, rescheduler=rescheduler))


def test_a_blocking_pod_that_may_be_moved_is_moved_and_no_other(owned):
    operator = owned.operator(moving(enabled=True))

    wait_until(lambda: not is_there(owned, "moves"), "the pod is evicted")

    path = f"/apis/apps/v1/namespaces/{owned.namespace}/replicasets/web"
    said = owned.cluster.call("GET", path)["metadata"]["annotations"]
    assert said["joulie.io/last-eviction-from-class"] == "eco"
    assert is_there(owned, "stays")
    assert "temper_power_evictions_total" in operator.page().decode()


@pytest.mark.parametrize("options", [{}, {"enabled": True, "dry_run": True}])
def test_by_default_and_in_a_dry_run_no_pod_is_moved(owned, nodes, options):
    operator = owned.operator(moving(**options))

    until(owned, nodes[1], schedulable="draining")
    wait_until(lambda: twin(owned, nodes[1])["status"]["rescheduleRecommendations"], "advice")

    if options:
        left_out = 'reason="dry_run"'
        wait_until(lambda: left_out in operator.page().decode(), "it is told")
    assert is_there(owned, "moves")


def hardware(yard, name):
    answer = yard.cluster.client.get(f"{GROUP}/nodehardwares/{name}")
    return answer.json() if answer.status_code == 200 else {}


def test_the_labels_of_a_node_become_its_hardware(yard):
    labels = {
        "feature.node.kubernetes.io/cpu-model.name": "AMD_EPYC_9654_96-Core",
        "feature.node.kubernetes.io/cpu-sockets": "2",
    }
    known = unique("known")
    yard.add_node(known, **labels)
    yard.operator(ECO)

    def published():
        made = hardware(yard, known)
        return made if made.get("status") else None

    made = wait_until(published, "the hardware is published")

    assert made["status"]["cpu"]["capRange"]["maxWattsPerSocket"] == 360
    assert made["status"]["cpu"]["sockets"] == 2
    assert made["status"]["gpu"] == {"present": False, "count": 0}
    assert made["status"]["quality"]["overall"] == "heuristic"
    assert made["status"]["inventoryResolution"]["hardwareCatalogKey"]["cpu"] == "EPYC 9654"
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", known)
    assert hardware(yard, yard.node) == {}

    yard.cluster.patch(
        {"kind": "Node", "metadata": {"name": known}},
        {"metadata": {"labels": {"joulie.io/hw.gpu-model": "NVIDIA-L4"}}},
    )

    wait_until(
        lambda: hardware(yard, known)["status"]["gpu"].get("model") == "L4", "the label follows"
    )
    yard.cluster.without_node(known)
    yard.cluster.client.delete(f"{GROUP}/nodehardwares/{known}")


def test_hardware_that_somebody_else_has_told_is_left(yard, nodes):
    labels = {"feature.node.kubernetes.io/cpu-model.name": "AMD_EPYC_9654"}
    yard.cluster.patch(
        {"kind": "Node", "metadata": {"name": nodes[1]}}, {"metadata": {"labels": labels}}
    )
    before = hardware(yard, nodes[1])
    yard.operator(ECO)
    # The label names a denser processor, so that this node is the performance node now.
    until(yard, nodes[1], schedulable="performance")
    until(yard, nodes[0], schedulable="eco")

    assert hardware(yard, nodes[1]) == before
