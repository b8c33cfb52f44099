"""Our own programs, as the chart starts them and with no more rights than it gives them."""

import contextlib
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml

from temper_plugin_kubernetes.events import LONGEST_MESSAGE, EventSubject, NodeEvent, event_object
from tests.control_plane.cluster import PATCHES, pod, unique, wait_until
from tests.kubernetes.chart.releases import NAMESPACE, OVERCOMMITTED

TEMPER = str(Path(sys.executable).with_name("temper"))
HOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/temper-overcommit"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/temper-webhook-tls"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


@pytest.fixture
def as_account(plane, tmp_path):
    """Write a kubeconfig in the name of a service account and return its path."""

    def write(account):
        kubeconfig = yaml.safe_load((plane.directory / "kubeconfig").read_text())
        kubeconfig["users"][0]["user"] = {"token": plane.token(account, NAMESPACE)}
        path = tmp_path / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig))
        return str(path)

    return write


@pytest.fixture
def started(plane, as_account, tmp_path):
    """Start what a Deployment starts; yields where its plain port is."""

    @contextlib.contextmanager
    def start(name, plain, host="127.0.0.1", **ports):
        deployment = plane.call("GET", f"{DEPLOYMENTS}/{name}")
        spec = deployment["spec"]["template"]["spec"]
        settings = plane.call("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/temper-agent")
        (tmp_path / "agent.toml").write_text(settings["data"]["agent.toml"])
        free = {
            each["containerPort"]: ports.get(each["name"]) or _free_port()
            for each in spec["containers"][0]["ports"]
        }
        moved = {f"0.0.0.0:{there}": f"{host}:{here}" for there, here in free.items()}
        moved["/etc/temper/agent.toml"] = str(tmp_path / "agent.toml")
        arguments = [_moved(each, moved) for each in spec["containers"][0]["args"]]
        arguments += ["--kubeconfig", as_account(spec["serviceAccountName"])]
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen([TEMPER, *arguments], stdout=log, stderr=log)
            try:
                yield f"http://{host}:{free[plain]}"
            finally:
                process.terminate()
                process.wait(timeout=20)
                sys.stdout.write((tmp_path / "log").read_text())
        assert process.returncode == 0

    return start


def test_the_webhook_serves_with_the_authority_that_the_chart_makes(plane, release, started):
    release.installed("--set", "webhook.enabled=true,restoreOnUninstall=false")

    with started("temper-webhook", 8081) as observed:
        wait_until(lambda: _is_ready(observed), "the webhook is ready", 60)

    (hook,) = plane.call("GET", HOOK)["webhooks"]
    assert hook["clientConfig"]["caBundle"] == plane.call("GET", SECRET)["data"]["ca.crt"]


@pytest.fixture
def own_address():
    """An address of this machine that is none of its loopback, which no endpoint may be."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError as error:
            pytest.skip(f"this machine has no address but loopback's: {error.strerror}")
        return probe.getsockname()[0]


@pytest.fixture
def endpoint(plane, own_address):
    """Stand in for what would run the pod, and list it as the Service's; gives its port."""
    port = _free_port()
    made = plane.call("POST", SLICES, _slice(own_address, port))
    yield port
    plane.call("DELETE", f"{SLICES}/{made['metadata']['name']}")


def _slice(address, port):
    return {
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": "temper-webhook-",
            "labels": {"kubernetes.io/service-name": "temper-webhook"},
        },
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }


def test_the_api_server_calls_the_webhook_by_its_service(
    plane, release, started, own_address, endpoint
):
    release.installed("--set", "webhook.enabled=true,restoreOnUninstall=false")
    asked = pod(unique("a"), None, namespace=OVERCOMMITTED, cpu="1")
    path = f"/api/v1/namespaces/{OVERCOMMITTED}/pods?dryRun=All"

    def request():
        made = plane.call("POST", path, asked)
        return made["spec"]["containers"][0]["resources"]["requests"]["cpu"]

    assert request() == "1"
    with started("temper-webhook", 8081, own_address, https=endpoint):
        wait_until(lambda: request() == "700m", "the request is lowered", 60)
    assert request() == "1"


def test_the_placement_service_is_ready_with_the_rights_it_has(plane, release, started):
    node = unique("node")
    plane.node(node)
    release.installed("--set", "scheduler.enabled=true,restoreOnUninstall=false")

    with started("temper-placement", 8888) as observed:
        wait_until(lambda: _is_ready(observed), "the service is ready", 60)

    plane.without_node(node)


def test_the_last_job_asks_every_node_by_the_agents_account(helm, plane, release, as_account):
    node = unique("node")
    plane.node(node)
    release.installed()
    job = helm.render().get("Job", "temper-restore")["spec"]["template"]["spec"]
    asked = [*job["containers"][0]["args"], "--kubeconfig", as_account(job["serviceAccountName"])]

    done = subprocess.run([TEMPER, *asked], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr + done.stdout
    assert node in done.stdout
    plane.without_node(node)


REFUSED = {
    "a taint": {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
    "a cordon": {"spec": {"unschedulable": True}},
    "a label": {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/never"]}},
    "an annotation of theirs is added": {"metadata": {"annotations": {"example.com/new": "x"}}},
    "an annotation of theirs is changed": {"metadata": {"annotations": {"example.com/a": "y"}}},
    "an annotation of theirs is removed": {"metadata": {"annotations": {"example.com/a": None}}},
    "the kill switch is withdrawn": {
        "metadata": {"annotations": {"temper.codes/safe-mode-requested": None}}
    },
    "the kill switch is changed": {
        "metadata": {"annotations": {"temper.codes/safe-mode-requested": "false"}}
    },
    "an annotation is long": {"metadata": {"annotations": {"temper.codes/fill": "x" * 1025}}},
    "annotations are many": {
        "metadata": {"annotations": {f"temper.codes/fill-{number}": "" for number in range(33)}}
    },
}
ALLOWED = {"example.com/a": "x", "temper.codes/agent-status": "enforcing"}


def test_agents_change_nothing_of_a_node_but_the_annotations_of_temper(plane, release):
    node = unique("node")
    plane.node(node)
    path = f"/api/v1/nodes/{node}"
    theirs = {"example.com/a": "x", "temper.codes/safe-mode-requested": "true"}
    plane.call("PATCH", path, {"metadata": {"annotations": theirs}}, **PATCHES)
    release.installed("--set", "restoreOnUninstall=false")
    as_agent = {"Authorization": f"Bearer {plane.token('temper-agent', NAMESPACE)}", **PATCHES}

    def refuses(change):
        answer = plane.client.patch(f"{path}?dryRun=All", json=change, headers=as_agent)
        return answer.status_code == 422 and "Temper's agents" in answer.json()["message"]

    # A policy takes the server a moment to take up.
    wait_until(lambda: refuses(REFUSED["a taint"]), "the policy is in force", 30)
    assert {what for what, change in REFUSED.items() if not refuses(change)} == set()
    plane.call("PATCH", path, {"metadata": {"annotations": ALLOWED}}, **as_agent)
    gone = {"metadata": {"annotations": {"temper.codes/agent-status": None}}}
    assert plane.call("PATCH", path, gone, **as_agent)["metadata"]["annotations"] == theirs
    # Whoever else may change nodes goes on doing so.
    plane.call("PATCH", path, {"metadata": {"labels": {"example.com/pool": "a"}}}, **PATCHES)
    plane.without_node(node)


EVENTS = "/api/v1/namespaces/kube-system/events"


LONG = "x" * 254
REFUSED_OF_EVENTS = {
    "a long reason": {"reason": LONG},
    "a long action": {"action": LONG},
    "a long instance": {"reportingInstance": LONG},
    "a long host": {"source": {"component": "temper-agent", "host": LONG}},
    "a long field": {
        "involvedObject": {"kind": "Pod", "namespace": "kube-system", "fieldPath": LONG}
    },
    "a long beginning of a name": {"metadata": {"namespace": "kube-system", "generateName": LONG}},
    "labels": {"metadata": {"namespace": "kube-system", "generateName": "a", "labels": {"a": "b"}}},
    "finalizers": {
        "metadata": {"namespace": "kube-system", "generateName": "a", "finalizers": ["a.b/c"]}
    },
    "a related object": {"related": {"kind": "Pod", "name": LONG}},
}


def event(component, **metadata):
    involved = {"kind": "Pod", "name": "n", "namespace": "kube-system", "apiVersion": "v1"}
    return {
        "metadata": {"namespace": "kube-system", **metadata},
        "involvedObject": involved,
        "reason": "Rebooted",
        "type": "Warning",
        "source": {"component": component},
        "reportingComponent": component,
    }


def test_agents_write_no_event_in_the_name_of_another_component(plane, release):
    theirs = plane.call("POST", EVENTS, event("kubelet", generateName="theirs-"))
    path = f"{EVENTS}/{theirs['metadata']['name']}"
    release.installed("--set", "restoreOnUninstall=false")
    authorization = {"Authorization": f"Bearer {plane.token('temper-agent', NAMESPACE)}"}

    def refuses(method, where, body, **headers):
        answer = plane.client.request(
            method, f"{where}?dryRun=All", json=body, headers={**authorization, **headers}
        )
        return answer.status_code == 422 and "Temper's agents" in answer.json()["message"]

    forged = event("kubelet", generateName="forged-")
    # A policy takes the server a moment to take up.
    wait_until(lambda: refuses("POST", EVENTS, forged), "the policy is in force", 30)
    assert refuses("PATCH", path, {"message": "all is well"}, **PATCHES)
    assert refuses("PATCH", path, {"reportingComponent": "temper-agent"}, **PATCHES)
    odd = {
        what: {**event("temper-agent", generateName="ours-"), **change}
        for what, change in REFUSED_OF_EVENTS.items()
    }
    assert {what for what, body in odd.items() if not refuses("POST", EVENTS, body)} == set()
    plane.call("POST", EVENTS, event("temper-agent", generateName="ours-"), **authorization)
    node = EventSubject("Node", "n" * 253, "u")
    longest = NodeEvent(node, "SafeMode", "m" * LONGEST_MESSAGE)
    body = event_object(longest, "2026-01-01T00:00:00Z", node.name)
    plane.call("POST", "/api/v1/namespaces/default/events", body, **authorization)


@pytest.mark.parametrize("name", ["temper-agent-nodes", "temper-agent-events"])
def test_the_policies_are_of_the_account_that_the_values_name(helm, name):
    options = ("--set", "serviceAccount.create=false,serviceAccount.name=theirs")

    policy = helm.render(*options).get("ValidatingAdmissionPolicy", name)

    (condition,) = policy["spec"]["matchConditions"]
    assert '"system:serviceaccount:temper:theirs"' in condition["expression"]


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _moved(argument, moved):
    for there, here in moved.items():
        argument = argument.replace(there, here)
    return argument


def _is_ready(url):
    try:
        return httpx2.get(f"{url}/readyz", timeout=5, trust_env=False).is_success
    except httpx2.TransportError:
        return False
