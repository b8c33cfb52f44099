"""``temper k8s doctor`` against a real API server: each finding, and the silence without it."""

import base64
import json
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.kubernetes.tools.conftest import Fleet, told_by_an_agent
from tests.kubernetes.tools.made_objects import (
    CLASSES,
    autoscaler,
    classes_path,
    crd,
    installation_of,
    priority_class,
    webhook,
    workload,
)

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
DAEMONS = "/apis/apps/v1/namespaces/{}/daemonsets"


class Objects:
    """Makes objects by their collections' paths, and leaves what it found."""

    def __init__(self, cluster):
        self.cluster, self.made = cluster, []
        self.base, self.touched = {}, set()

    def install(self, collection, document):
        """Make an object that every test finds as it was."""
        self.base[f"{collection}/{document['metadata']['name']}"] = (collection, document)
        self.remove_one(f"{collection}/{document['metadata']['name']}")
        self.cluster.call("POST", collection, document)

    def make(self, collection, document):
        path = f"{collection}/{document['metadata']['name']}"
        self.remove_one(path)
        self.cluster.call("POST", collection, document)
        self.made.append(path)

    def remove_one(self, path):
        self.touched.add(path)
        answer = self.cluster.client.request(
            "DELETE", path, json={"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        )
        assert answer.status_code in (200, 202, 404), answer.text

    def patch(self, path, change):
        self.touched.add(path.removesuffix("/status"))
        self.cluster.call("PATCH", path, change, **{"Content-Type": "application/merge-patch+json"})

    def put_back(self):
        for path in reversed(self.made):
            self.remove_one(path)
        for path in self.touched & set(self.base):
            self.install(*self.base[path])
        self.made, self.touched = [], set()

    def remove(self):
        for path in self.base:
            self.remove_one(path)


@pytest.fixture(scope="module")
def base(cluster):
    """A healthy installation on two healthy nodes."""
    objects, fleet = Objects(cluster), Fleet(cluster)
    for collection, document in installation_of("temper"):
        objects.install(collection, document)
    for name in ("one", "two"):
        fleet.node(name, told_by_an_agent("enforcing", 3))
        fleet.agent(name)
    objects.touched = set()
    yield objects
    fleet.remove()
    objects.remove()


@pytest.fixture
def installed(base):
    yield base
    base.put_back()
    unlabelled = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None}}}
    base.patch("/api/v1/namespaces/temper", unlabelled)


@pytest.fixture
def doctor(k8s):
    """Run it; returns findings as (check, severity, nodes), and the whole answer."""

    def run(*options, **given):
        done = k8s("doctor", "-o", "json", "--no-kubelets", *options, **given)
        assert done.stderr == ""
        told = json.loads(done.stdout)
        assert done.returncode == (0 if told["is_clean"] else 1)
        found = {
            (each["check"], each["severity"], tuple(each["nodes"])) for each in told["findings"]
        }
        return found, told

    return run


def details(told, check):
    return " ".join(each["detail"] for each in told["findings"] if each["check"] == check)


@pytest.mark.usefixtures("installed")
def test_a_healthy_cluster_has_no_findings(k8s, doctor):
    assert doctor()[0] == set()

    done = k8s("doctor", "--no-kubelets")

    assert done.stdout == "2 nodes, 17 checks: nothing found\n"
    assert done.returncode == 0


@pytest.mark.usefixtures("installed")
def test_people_get_each_finding_with_its_remedy_and_the_worst_first(k8s, fleet):
    fleet.node("old", info={"kernelVersion": "5.10.0-28"})

    done = k8s("doctor", "--no-kubelets")

    lines = done.stdout.splitlines()
    assert lines[0].startswith("FAIL  kernel    kernel 5.10.0-28 has no sched_ext; it needs 6.12")
    assert lines[0].endswith("(1 node: old)")
    assert lines[1].strip().startswith("-> another node image")
    assert lines[2].startswith("note  coverage  no agent runs there")
    assert lines[-1] == "3 nodes, 17 checks: 1 error, 1 note"


NODES = {
    "an old kernel": (
        {"info": {"kernelVersion": "6.11.0-1-generic"}},
        ("kernel", "error"),
    ),
    "AKS by its provider": ({"providerID": "azure:///subscriptions/1"}, ("platform", "error")),
    "AKS by its label": (
        {"labels": {"kubernetes.azure.com/cluster": "mine"}},
        ("platform", "error"),
    ),
    "OpenShift": (
        {"info": {"osImage": "Red Hat Enterprise Linux CoreOS 418.94.202"}},
        ("platform", "error"),
    ),
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("what", NODES)
def test_nodes_that_cannot_enforce_are_found(fleet, doctor, what):
    given, (check, severity) = NODES[what]
    fleet.node("odd", told_by_an_agent("enforcing"), **given)
    fleet.agent("odd")

    assert doctor()[0] == {(check, severity, ("odd",))}


@pytest.mark.usefixtures("installed")
def test_autopilot_is_known_by_its_nodes(fleet, doctor):
    fleet.node("gk3-mine-pool-1", told_by_an_agent("enforcing"))
    fleet.agent("gk3-mine-pool-1")

    assert doctor()[0] == {("platform", "error", ("gk3-mine-pool-1",))}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("kernel", ["6.12.0", "6.18.15-gke", "7.0.1"])
def test_kernels_that_have_sched_ext_are_no_finding(fleet, doctor, kernel):
    info = {"kernelVersion": kernel, "osImage": "Ubuntu 25.10"}
    fleet.node("new", told_by_an_agent("enforcing"), info=info, providerID="gce://x")
    fleet.agent("new")

    assert doctor()[0] == set()


MODES = {
    "safe_mode:foreign_scheduler": ("foreign_scheduler", "error"),
    "safe_mode:invalid_plan": ("invalid_plan", "error"),
    "safe_mode:ejected": ("ejected", "error"),
    "safe_mode:crash_loop": ("crash_loop", "error"),
    "safe_mode:requested": ("safe_mode", "note"),
    "observe_only:no_sched_ext": ("sched_ext", "error"),
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("status", [*MODES, "observe_only:not_asked", "reloading"])
def test_what_the_agent_says_of_its_mode_is_told(fleet, doctor, status):
    fleet.node("odd", told_by_an_agent(status, message="scx_lavd is attached"))
    fleet.agent("odd")

    found, told = doctor()

    assert found == ({(*MODES[status], ("odd",))} if status in MODES else set())
    if MODES.get(status, ("", ""))[0] not in ("", "safe_mode", "sched_ext"):
        assert "scx_lavd is attached" in told["findings"][0]["detail"]


@pytest.mark.usefixtures("installed")
def test_each_check_that_an_agents_preflight_failed_is_a_finding_with_its_remedy(fleet, doctor):
    message = "btf: no BTF here; cgroup_v2: only cgroup v1 is mounted; static_cpu_manager: it pins"
    fleet.node("odd", told_by_an_agent("safe_mode:preflight", message=message))
    fleet.agent("odd")

    found, told = doctor()

    assert found == {
        (check, "error", ("odd",)) for check in ("btf", "cgroup_v2", "static_cpu_manager")
    }
    assert "only cgroup v1 is mounted" in details(told, "cgroup_v2")
    assert all("run `temper doctor`" not in each["remedy"] for each in told["findings"])


@pytest.mark.usefixtures("installed")
def test_agents_that_fail_are_gone_silent_or_stale_are_found(fleet, doctor):
    fleet.node("failing", told_by_an_agent("enforcing"))
    fleet.agent("failing", waiting="CrashLoopBackOff")
    fleet.node("gone", told_by_an_agent("enforcing"))
    fleet.node("silent")
    fleet.agent("silent")
    fleet.node("stale", told_by_an_agent("enforcing", seconds=4000))
    fleet.agent("stale")

    assert doctor()[0] == {
        ("agent", "error", ("failing",)),
        ("agent", "error", ("gone",)),
        ("agent", "warning", ("silent",)),
        ("agent", "warning", ("stale",)),
    }


@pytest.mark.usefixtures("installed")
def test_versions_that_differ_are_found_but_the_canary_may(fleet, doctor):
    fleet.node("canary", told_by_an_agent("enforcing"))
    fleet.agent("canary", tag="2.0.0", is_canary=True)
    before = doctor()[0]

    fleet.node("three", told_by_an_agent("enforcing"))
    fleet.agent("three", tag="0.9.0")
    found, told = doctor()

    assert before == set()
    assert found == {("version_skew", "warning", ("three",))}
    assert details(told, "version_skew") == "agents of several versions: 1 of 0.9.0, 2 of 1.0.0"


RIVALS = {
    "koordinator": ("koordlet", "koordlet:v1.6", "warning"),
    "katalyst": ("katalyst-agent", "katalyst-agent:v0.5", "warning"),
    "nri": ("nri-resource-policy-balloons", "nri-resource-policy-balloons:v0.9", "warning"),
    "tuned": ("tuned", "cluster-node-tuning-operator:4.18", "warning"),
    "irqbalance": ("irqbalance", "irqbalance:1", "warning"),
    "cpu_pinning": ("cpu-pooler", "cpu-pooler:1", "warning"),
    "foreign_scheduler": ("gthulhu", "gthulhu:0.4", "error"),
}


@pytest.mark.parametrize("check", RIVALS)
def test_software_that_moves_threads_as_well_is_found_by_its_workload(installed, doctor, check):
    name, image, severity = RIVALS[check]
    installed.make(DAEMONS.format("shop"), workload(name, f"registry.example/{image}"))

    found, told = doctor()

    assert found == {(check, severity, ())}
    assert f"DaemonSet shop/{name}" in details(told, check)


@pytest.mark.parametrize("name", ["fluent-bit", "fortuned", "scxyz", "balloon-shop"])
def test_other_workloads_are_none_of_its_business(installed, doctor, name):
    installed.make(DAEMONS.format("shop"), workload(name, f"registry.example/{name}:1"))

    assert doctor()[0] == set()


def test_software_that_has_brought_its_resources_is_noted(installed, doctor):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    installed.make(path, crd("nodeslos", "slo.koordinator.sh"))

    assert doctor()[0] == {("koordinator_resources", "note", ())}


def test_autoscalers_are_told_only_where_requests_are_lowered(installed, doctor):
    path = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
    installed.make(path, autoscaler("web"))
    before = doctor()[0]

    label = {"metadata": {"labels": {"temper.codes/overcommit": "enabled"}}}
    installed.patch("/api/v1/namespaces/shop", label)
    after = doctor()[0]
    label["metadata"]["labels"]["temper.codes/overcommit"] = None
    installed.patch("/api/v1/namespaces/shop", label)

    assert (before, after) == (set(), {("hpa", "note", ())})


def test_a_vertical_autoscaler_beside_the_webhook_is_a_warning(installed, cluster, doctor):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    installed.make(definitions, crd("verticalpodautoscalers", "autoscaling.k8s.io"))
    base = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers"
    body = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "Verticalpodautoscalers",
        "metadata": {"name": "web"},
    }
    until_served(cluster, base)
    installed.make(base, body)
    label = {"metadata": {"labels": {"temper.codes/overcommit": "enabled"}}}
    installed.patch("/api/v1/namespaces/shop", label)

    found, told = doctor()
    label["metadata"]["labels"]["temper.codes/overcommit"] = None
    installed.patch("/api/v1/namespaces/shop", label)

    assert found == {("vpa", "warning", ())}
    assert "in shop: web" in details(told, "vpa")


def until_served(cluster, path):
    for _ in range(200):
        if cluster.client.get(path).status_code == 200:
            return
        threading.Event().wait(0.05)
    raise AssertionError(f"{path} is never served")


@pytest.mark.parametrize(
    "path",
    [
        "/apis/apps/v1/namespaces/temper/daemonsets/temper-agent",
        "/api/v1/namespaces/temper/configmaps/temper-agent",
        "/api/v1/namespaces/temper/services/temper-agent",
    ],
)
def test_an_object_of_the_chart_that_is_missing_is_found(installed, doctor, path):
    installed.remove_one(path)

    found, told = doctor()

    assert found == {("installation", "error", ())}
    assert "temper-agent is missing" in told["findings"][0]["detail"]


def test_agents_that_are_not_ready_are_counted(installed, doctor):
    daemons = DAEMONS.format("temper")
    status = {"desiredNumberScheduled": 3, "numberReady": 1, "currentNumberScheduled": 3}
    installed.patch(
        f"{daemons}/temper-agent/status", {"status": {**status, "numberMisscheduled": 0}}
    )

    found, told = doctor()

    assert found == {("installation", "warning", ())}
    assert details(told, "installation") == "1 of 3 agents are ready"


def test_a_namespace_that_is_not_there_is_told(doctor):
    found, told = doctor("--namespace", "nowhere")

    assert "there is no namespace nowhere" in details(told, "installation")
    assert ("installation", "error", ()) in found


def test_a_right_that_the_agents_lack_is_named(installed, cluster, doctor):
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/temper-agent"
    rules = cluster.call("GET", role)["rules"]
    cut = [{**rule, "verbs": [v for v in rule["verbs"] if v != "watch"]} for rule in rules]
    installed.patch(role, {"rules": cut})

    found, told = doctor()
    installed.patch(role, {"rules": rules})

    assert found == {("rights", "error", ())}
    assert details(told, "rights") == (
        "system:serviceaccount:temper:temper-agent may not watch pods, watch nodes"
    )


@pytest.mark.parametrize(
    "change",
    [{"value": 500}, {"preemptionPolicy": "PreemptLowerPriority"}, {"globalDefault": True}],
)
def test_a_priority_class_that_says_something_else_is_found(installed, doctor, change):
    installed.make(classes_path, {**priority_class("temper-low", *CLASSES["temper-low"]), **change})

    found, told = doctor()

    assert found == {("priority_classes", "error", ())}
    assert "temper-low has value" in details(told, "priority_classes")


def test_priority_classes_that_are_missing_are_named(installed, doctor):
    installed.remove_one(f"{classes_path}/temper-high")

    found, told = doctor()

    assert found == {("priority_classes", "warning", ())}
    assert details(told, "priority_classes") == "missing: temper-high"


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_pod_security_level_that_refuses_agents_is_found(installed, doctor, level):
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
    installed.patch("/api/v1/namespaces/temper", label)

    found, told = doctor()

    assert found == {("pod_security", "error", ())}
    assert level in details(told, "pod_security")


def certificate(directory, days):
    """Return a certificate authority that expires in so many days; negative ones have expired."""
    begins = ["-not_before", "20200101000000Z", "-not_after", "20200201000000Z"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", directory / "key", "-out", directory / "crt", "-subj", "/CN=test",
         *(begins if days < 0 else ["-days", str(days)])],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return base64.b64encode((directory / "crt").read_bytes()).decode()


def make_webhook(installed, bundle, **hook):
    installed.make(WEBHOOKS, webhook(bundle, **hook))


def answering(installed):
    """Say that a pod answers for the webhook's service."""
    installed.make(
        "/apis/discovery.k8s.io/v1/namespaces/temper/endpointslices",
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "temper-webhook-1",
                "labels": {"kubernetes.io/service-name": "temper-webhook"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}],
        },
    )


def test_a_webhook_that_is_well_is_no_finding(installed, doctor, tmp_path):
    make_webhook(installed, certificate(tmp_path, 365))
    answering(installed)

    assert doctor()[0] == set()


@pytest.mark.parametrize(
    ("days", "severity", "told"),
    [(None, "warning", "has no caBundle"), (3, "warning", "expires in 2 days")],
)
def test_a_webhook_that_the_server_cannot_trust_is_found(
    installed, doctor, tmp_path, days, severity, told
):
    make_webhook(installed, certificate(tmp_path, days) if days else "")
    answering(installed)

    found, answer = doctor()

    assert found == {("webhook", severity, ())}
    assert told in details(answer, "webhook")


def test_a_webhook_that_nobody_answers_for_or_that_fails_closed_is_found(
    installed, doctor, tmp_path
):
    make_webhook(installed, certificate(tmp_path, 365), failurePolicy="Fail")

    found, told = doctor()

    assert found == {("webhook", "error", ()), ("webhook", "warning", ())}
    assert "no pod answers for temper-webhook" in details(told, "webhook")


def own_address():
    """Return an address of this machine that is not the loopback's, which is never proxied to."""
    found = subprocess.run(["hostname", "-I"], check=True, capture_output=True, text=True)
    addresses = [each for each in found.stdout.split() if "." in each]
    return addresses[0] if addresses else pytest.skip("this machine has no network address")


@contextmanager
def kubelet(cluster, configuration):
    """Answer ``/configz`` as a kubelet does; yields the port."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"kubeletconfig": configuration}).encode()
            self.send_response(200 if self.path == "/configz" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer((own_address(), 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cluster.directory / "server.crt", cluster.directory / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reachable(fleet, name, port):
    fleet.status(
        "Node",
        name,
        {
            "addresses": [{"type": "InternalIP", "address": own_address()}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"cpuManagerPolicy": "static"}, {("static_cpu_manager", "error")}),
        ({"cpuManagerPolicy": "none", "failCgroupV1": False}, {("cgroup_v2", "note")}),
        ({"cpuManagerPolicy": "none", "cgroupDriver": "systemd"}, set()),
    ],
)
def test_what_kubelets_are_told_to_do_is_looked_at(cluster, fleet, k8s, configuration, expected):
    with kubelet(cluster, configuration) as port:
        reachable(fleet, "one", port)
        told = json.loads(k8s("doctor", "-o", "json").stdout)

    found = {(each["check"], each["severity"], tuple(each["nodes"])) for each in told["findings"]}
    assert found == {(*each, ("one",)) for each in expected}, told["unknown"]
    assert not any(each["what"].endswith("of one") for each in told["unknown"])


@pytest.mark.usefixtures("installed")
def test_a_kubelet_that_does_not_answer_is_no_finding_and_told(k8s):
    told = json.loads(k8s("doctor", "-o", "json").stdout)

    assert told["findings"] == []
    assert "the kubelets' configuration of one" in told["unknown"][0]["what"]


@pytest.mark.usefixtures("installed")
def test_what_may_not_be_looked_at_is_named_with_the_right_that_it_takes(k8s, cluster, installed):
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    installed.make(
        f"{rbac}/clusterroles",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "only-nodes"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
        },
    )
    installed.make(
        f"{rbac}/clusterrolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "only-nodes"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "only-nodes",
            },
            "subjects": [
                {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "nobody"}
            ],
        },
    )

    done = k8s("doctor", "-o", "json", kubeconfig=cluster.directory / "kubeconfig.nobody")

    told = json.loads(done.stdout)
    rights = {each["what"]: each["why"].rpartition("the right to ")[2] for each in told["unknown"]}
    assert (told["findings"], done.returncode, done.stderr) == ([], 0, "")
    assert rights["the agents' pods"] == "list pods in the whole cluster"
    assert rights["the kubelets' configuration"].startswith("get nodes/")
    assert rights["conflicting workloads"] == "list daemonsets.apps in the whole cluster"
    assert rights["the agents' rights"].startswith("create subjectaccessreviews")
    assert rights["Temper's objects"] == "get daemonsets.apps in the namespace temper"
