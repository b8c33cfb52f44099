"""Our own programs, as the chart starts them and with no more rights than it gives them."""

import contextlib
import socket
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import httpx2
import pytest
import yaml
from attrs import frozen

from temper_plugin_kubernetes.annotation_requests import RESTORE
from temper_plugin_kubernetes.annotations import ANSWERS, OURS, RESTORED
from temper_plugin_kubernetes.events import LONGEST_MESSAGE, EventSubject, NodeEvent, event_object
from temper_plugin_kubernetes.operators.fleet import AGENTS
from temper_plugin_power.controller.nodes import PROFILE_LABEL
from tests.control_plane.cluster import PATCHES, Cluster, pod, unique, wait_until
from tests.kubernetes.chart.releases import NAMESPACE, OVERCOMMITTED

TEMPER = str(Path(sys.executable).with_name("temper"))
HOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/temper-overcommit"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
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
        moved["/etc/temper/token/token"] = str(_token_of(plane, spec, tmp_path / "token"))
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


def _token_of(plane, spec, path):
    """Write the token that a pod mounts, if it mounts one."""
    for volume in spec["volumes"]:
        if volume["name"] == "token":
            secret = plane.call("GET", f"{SECRETS}/{volume['secret']['secretName']}")
            path.write_bytes(b64decode(secret["data"]["token"]))
    return path


@pytest.mark.parametrize("reach", ["pod", "proxy"])
def test_the_page_of_the_cluster_lists_nodes_with_the_token_and_the_rights_that_the_chart_makes(
    plane, release, started, tmp_path, reach
):
    name = unique("node")
    plane.node(name)
    on = f"dashboard.enabled=true,dashboard.reach={reach},restoreOnUninstall=false"
    release.installed("--set", on)

    with (
        started("temper-dashboard", 8090) as address,
        httpx2.Client(base_url=address, trust_env=False) as client,
    ):
        wait_until(lambda: _is_ready(address), "the server is ready", 60)
        assert client.get("/fleet/nodes").status_code == 401
        token = (tmp_path / "token").read_text()
        begun = client.post("/login", json={"token": token}).raise_for_status()
        client.headers["temper-session"] = begun.json()["key"]
        document = client.get("/fleet/nodes").json()

    assert (document["problem"], document["notes"]) == ("", [])
    (found,) = (each for each in document["nodes"] if each["node"] == name)
    assert found["why"] == "no agent runs there"
    plane.without_node(name)


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


def test_the_power_operator_leads_with_what_the_chart_makes(release, started):
    release.installed("--set", "power.enabled=true,power.crds.keep=false,restoreOnUninstall=false")

    with started("temper-power-operator", 9877) as observed:
        wait_until(lambda: _is_ready(observed), "the operator knows the cluster", 60)
        wait_until(lambda: "operator_leading 1.0" in _metrics(observed), "the operator leads", 60)


def _metrics(observed):
    return httpx2.get(f"{observed}/metrics", trust_env=False).text


def test_the_power_extender_is_ready_with_the_kinds_and_the_rights_that_the_chart_makes(
    release, started
):
    release.installed("--set", "power.enabled=true,power.crds.keep=false,restoreOnUninstall=false")

    with started("temper-power-extender", 9876) as observed:
        wait_until(lambda: _is_ready(observed), "the extender is ready", 60)
        body = {"Pod": {"metadata": {"name": "a"}}, "NodeNames": ["stranger"]}
        scores = httpx2.post(f"{observed}/prioritize", json=body, trust_env=False).json()

    assert scores == [{"host": "stranger", "score": 5}]


@pytest.fixture
def last_job(helm, release, as_account):
    """Install a release, and return the command of its last job, in the name of its account."""
    release.installed()
    job = helm.render().get("Job", "temper-restore")["spec"]["template"]["spec"]
    arguments = [*job["containers"][0]["args"], "--kubeconfig"]
    return [TEMPER, *arguments, as_account(job["serviceAccountName"])]


def test_the_last_job_restores_nodes_by_an_account_of_its_own(plane, last_job):
    node, bare = unique("node"), unique("node")
    for name in (node, bare):
        plane.node(name)
    plane.annotate(node, agent_status="enforcing", safe_mode_requested="true", of_old="x")
    plane.annotate(bare, agent_status="enforcing")
    labels = dict(label.split("=") for label in AGENTS.split(","))
    plane.run(pod("agent", node, NAMESPACE, labels=labels))
    as_agent = {"Authorization": f"Bearer {plane.token('temper-agent', NAMESPACE)}", **PATCHES}
    with subprocess.Popen(last_job, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        requested = lambda: plane.annotations(node).get(RESTORE) == "uninstall"  # noqa: E731
        wait_until(requested, "the agent is asked", 30)
        answer = {"metadata": {"annotations": {RESTORED: "2026-01-01T00:00:00Z"}}}
        plane.call("PATCH", f"/api/v1/nodes/{node}", answer, **as_agent)
        told = job.communicate(timeout=60)[0].decode()

    assert job.returncode == 0, told
    assert f"{node}: restored\n" in told
    assert f"{bare}: no agent runs here" in told
    assert plane.annotations(node) == {"temper.codes/safe-mode-requested": "true"}
    assert plane.annotations(bare) == {}
    for name in (node, bare):
        plane.without_node(name)


def managed(fields):
    """Return the record of an object's fields that a client wrote, as it may send it itself."""
    return {
        "manager": "temper",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": fields},
    }


def nested(levels):
    return {"f:a": nested(levels - 1)} if levels else {}


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
    "the beginning of its name": {"metadata": {"generateName": "x"}},
    "managed fields are deep": {"metadata": {"managedFields": [managed(nested(100))]}},
}
REFUSED_OF_AGENTS = {
    **REFUSED,
    "a restoration is requested": {"metadata": {"annotations": {RESTORE: "again"}}},
    "a request to restore is withdrawn": {"metadata": {"annotations": {RESTORE: None}}},
    "an annotation of no agent": {"metadata": {"annotations": {"temper.codes/fill": ""}}},
    "an annotation is long": {"metadata": {"annotations": {RESTORED: "\u00e9" * 1025}}},
}
REFUSED_OF_JOBS = {
    **REFUSED,
    "another value of the request": {"metadata": {"annotations": {RESTORE: "2026-01-01"}}},
    "an answer": {"metadata": {"annotations": {RESTORED: "2026-01-01T00:00:00Z"}}},
}
REFUSED_OF_POWER_OPERATORS = {
    **REFUSED_OF_AGENTS,
    "another profile": {"metadata": {"labels": {PROFILE_LABEL: "x"}}},
    "an annotation of agents": {"metadata": {"annotations": {RESTORED: "x"}}},
}
WRITTEN_BY_AGENTS = (*OURS, *ANSWERS)
LABELS = "agent.settings.plugins.power.operator.dry_run=false"
LABELLING = ("--set", f"power.enabled=true,power.crds.keep=false,restoreOnUninstall=false,{LABELS}")


@pytest.fixture
def guarded(plane, release, request):
    """A node with annotations of an operator, and what the API server says to accounts there."""
    node = unique("node")
    plane.node(node)
    theirs = {"example.com/a": "x", "temper.codes/safe-mode-requested": "true", RESTORE: "now"}
    plane.call("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": theirs}}, **PATCHES)
    release.installed(*getattr(request, "param", ()))
    yield Guarded(plane, node, theirs)
    plane.without_node(node)


@frozen
class Guarded:
    """A node, and the operator's annotations of it."""

    plane: Cluster
    node: str
    theirs: dict

    def patch(self, account, change, **options):
        token = self.plane.token(account, NAMESPACE)
        return self.plane.client.patch(
            f"/api/v1/nodes/{self.node}",
            json=change,
            headers={"Authorization": f"Bearer {token}", **PATCHES},
            params=options,
        )

    def refuses(self, account, change):
        answer = self.patch(account, change, dryRun="All")
        return answer.status_code == 422 and "Temper's" in answer.json()["message"]

    def taken(self, account, changes):
        """Return what is not refused of *changes*, once the server has taken up the policy."""
        taint = REFUSED["a taint"]
        wait_until(lambda: self.refuses(account, taint), "the policy is in force", 30)
        return {what for what, change in changes.items() if not self.refuses(account, change)}


def test_agents_change_nothing_of_a_node_but_the_annotations_of_agents(guarded):
    written = dict.fromkeys(WRITTEN_BY_AGENTS, "x" * 2048)

    assert guarded.taken("temper-agent", REFUSED_OF_AGENTS) == set()
    for wanted in (written, dict.fromkeys(WRITTEN_BY_AGENTS)):
        made = guarded.patch("temper-agent", {"metadata": {"annotations": wanted}})
        left = {key: value for key, value in wanted.items() if value}
        assert made.json()["metadata"]["annotations"] == guarded.theirs | left
    # Whoever else may change nodes goes on doing so.
    label = {"metadata": {"labels": {"example.com/pool": "a"}}}
    guarded.plane.call("PATCH", f"/api/v1/nodes/{guarded.node}", label, **PATCHES)


@pytest.mark.parametrize("guarded", [LABELLING], indirect=True)
def test_power_operators_change_nothing_of_a_node_but_the_label_of_its_profile(guarded):
    account = "temper-power-operator"

    assert guarded.taken(account, REFUSED_OF_POWER_OPERATORS) == set()
    for profile in ("eco", "performance"):
        made = guarded.patch(account, {"metadata": {"labels": {PROFILE_LABEL: profile}}})
        assert made.json()["metadata"]["labels"][PROFILE_LABEL] == profile
    assert guarded.refuses(account, {"metadata": {"labels": {PROFILE_LABEL: None}}})


def test_restore_jobs_request_restorations_and_remove_annotations_of_temper(guarded):
    guarded.plane.annotate(guarded.node, agent_status="enforcing", restored="x")
    gone = {"temper.codes/agent-status": None, RESTORED: None}

    assert guarded.taken("temper-restore", REFUSED_OF_JOBS) == set()
    for wanted in ({RESTORE: "uninstall", **gone}, {RESTORE: None}):
        assert guarded.patch("temper-restore", {"metadata": {"annotations": wanted}}).is_success
    left = {key: value for key, value in guarded.theirs.items() if key != RESTORE}
    assert guarded.plane.annotations(guarded.node) == left


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
    "a long name": {"metadata": {"namespace": "kube-system", "name": LONG}},
    "a long beginning of a name": {"metadata": {"namespace": "kube-system", "generateName": LONG}},
    "labels": {"metadata": {"namespace": "kube-system", "generateName": "a", "labels": {"a": "b"}}},
    "finalizers": {
        "metadata": {"namespace": "kube-system", "generateName": "a", "finalizers": ["a.b/c"]}
    },
    "many managed fields": {
        "metadata": {
            "namespace": "kube-system",
            "generateName": "a",
            "managedFields": [managed({f"f:{number}": {} for number in range(12_000)})],
        }
    },
    "long managed fields": {
        "metadata": {
            "namespace": "kube-system",
            "generateName": "a",
            "managedFields": [managed({f"f:{LONG}": {}})],
        }
    },
    "deep managed fields": {
        "metadata": {
            "namespace": "kube-system",
            "generateName": "a",
            "managedFields": [managed(nested(3))],
        }
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
    again = {key: body[key] for key in ("message", "lastTimestamp", "type")}
    path = f"/api/v1/namespaces/default/events/{body['metadata']['name']}"
    plane.call("PATCH", path, {**again, "message": "once more"}, **authorization, **PATCHES)


@pytest.mark.parametrize("name", ["temper-agent-nodes", "temper-agent-events"])
def test_the_policies_are_of_the_account_that_the_values_name(helm, name):
    given = "rbac.create=false,serviceAccount.create=false,serviceAccount.name=theirs"
    options = ("--set", given)

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
