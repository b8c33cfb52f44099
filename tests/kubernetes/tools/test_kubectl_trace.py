"""``kubectl temper trace`` finds pod, node and agent with the real kubectl and API server."""

import pytest

from temper_core import InputError, MachineError
from temper_kube.kubectl import Kubectl
from temper_kube.placing import place
from tests.control_plane.cluster import pod

LABELS = {"app.kubernetes.io/name": "temper", "app.kubernetes.io/component": "agent"}
NAMESPACE = "default"


@pytest.fixture
def kubectl(cluster, monkeypatch):
    """kubectl of the control plane, which KUBECONFIG leads to it."""
    for name in ("PATH", "KUBECONFIG"):
        monkeypatch.setenv(name, cluster.environment[name])
    return Kubectl()


@pytest.fixture
def running(cluster, node):
    """Return a function that makes a pod on the node. A kubelet is not there to run it."""

    def make(name, is_ready=True, **metadata):
        made = cluster.make(pod(name, node, NAMESPACE, **metadata))
        conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
        cluster.patch(made, {"status": {"phase": "Running", "conditions": conditions}}, "/status")

    return make


def test_a_pod_leads_to_its_node_and_to_the_agent_there_that_is_ready(kubectl, running, node):
    running(f"web-{node}")
    running(f"old-{node}", is_ready=False, labels=LABELS)
    running(f"agent-{node}", labels=LABELS)

    by_both = place(kubectl, f"{NAMESPACE}/web-{node}", NAMESPACE)

    assert (by_both.pod, by_both.node) == (f"{NAMESPACE}/web-{node}", node)
    assert by_both.agent.name == f"agent-{node}"
    assert place(kubectl, f"web-{node}", NAMESPACE) == by_both


def test_a_pod_that_is_not_there_is_what_kubectl_says(kubectl):
    with pytest.raises(InputError) as told:
        place(kubectl, "default/none", NAMESPACE)

    assert str(told.value) == 'Error from server (NotFound): pods "none" not found'


def test_a_pod_that_no_kubelet_has_started_does_not_run(kubectl, cluster, node):
    cluster.make(pod(f"web-{node}", node, NAMESPACE))

    with pytest.raises(MachineError, match=f"the pod default/web-{node} does not run: Pending"):
        place(kubectl, f"web-{node}", NAMESPACE)


def test_a_node_without_an_agent_is_named(kubectl, running, node):
    running(f"web-{node}")

    with pytest.raises(MachineError, match=f"no agent runs on the node {node}"):
        place(kubectl, f"web-{node}", NAMESPACE)


def test_a_container_that_cannot_be_reached_is_an_error_of_one_line(kubectl, running, node):
    running(f"web-{node}")
    running(f"agent-{node}", labels=LABELS)
    agent = place(kubectl, f"web-{node}", NAMESPACE).agent

    with pytest.raises(MachineError, match=rf"^agent-{node}: .+$") as told:
        agent.ask("trace", "list", "--output=json")
    assert "\n" not in str(told.value)
    with pytest.raises(MachineError, match=rf"^agent-{node}: .+$"):
        agent.copy(("trace", "fetch", "x", "--out=-"), lambda _: None)


def test_no_server_is_an_error_of_the_machine(kubectl, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    with pytest.raises(MachineError):
        place(kubectl, "web", NAMESPACE)
