"""``temper k8s doctor`` on other software and on Temper's own installation."""

import base64
import json
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.kubernetes.tools.made_cluster import DAEMONS, details
from tests.kubernetes.tools.made_objects import (
    CLASSES,
    autoscaler,
    classes_path,
    crd,
    priority_class,
    webhook,
    workload,
)

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


OURS = {"app.kubernetes.io/name": "temper"}
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
    run_with_rights(installed, name, f"registry.example/{image}")

    found, told = doctor()

    assert found == {(check, severity, ())}
    assert f"DaemonSet shop/{name}" in details(told, check)


def run_with_rights(installed, name, image, **labels):
    """Make a privileged DaemonSet in another namespace, and count a pod of it."""
    document = workload(name, image, labels)
    (container,) = document["spec"]["template"]["spec"]["containers"]
    container["securityContext"] = {"privileged": True}
    installed.make(DAEMONS.format("shop"), document)
    counts = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "numberReady"), 1)
    status = {"status": {**counts, "numberMisscheduled": 0}}
    installed.patch(f"{DAEMONS.format('shop')}/{name}/status", status)


def test_a_label_of_tempers_own_makes_no_other_scheduler_tempers(installed, doctor):
    run_with_rights(installed, "gthulhu", "registry.example/gthulhu:1", **OURS)

    assert doctor()[0] == {("foreign_scheduler", "error", ())}


def test_what_only_has_the_name_of_a_scheduler_is_none(installed, doctor):
    installed.make(DAEMONS.format("shop"), workload("gthulhu", "registry.example/gthulhu:1"))

    assert doctor()[0] == set()


def test_an_image_of_a_megabyte_takes_no_time_of_the_doctor(installed, doctor):
    image = "scx_layered " * 100_000 + "temper"
    installed.make(DAEMONS.format("shop"), workload("odd", image))

    assert doctor()[0] == set()


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


def certificate(days):
    """Return a certificate authority that expires in so many days; negative ones have expired."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")]),
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1000))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


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


def test_a_webhook_that_is_well_is_no_finding(installed, doctor):
    make_webhook(installed, certificate(365))
    answering(installed)

    assert doctor()[0] == set()


@pytest.mark.parametrize(
    ("days", "severity", "told"),
    [
        (None, "warning", "has no caBundle"),
        (3, "warning", "expires in 2 days"),
        (-1, "error", "has expired"),
    ],
)
def test_a_webhook_that_the_server_cannot_trust_is_found(installed, doctor, days, severity, told):
    make_webhook(installed, certificate(days) if days else "")
    answering(installed)

    found, answer = doctor()

    assert found == {("webhook", severity, ())}
    assert told in details(answer, "webhook")


def test_a_webhook_that_nobody_answers_for_or_that_fails_closed_is_found(installed, doctor):
    make_webhook(installed, certificate(365), failurePolicy="Fail")

    found, told = doctor()

    assert found == {("webhook", "error", ()), ("webhook", "warning", ())}
    assert "no pod answers for temper-webhook" in details(told, "webhook")


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
    assert rights["the agents' pods"] == "list pods in the namespace temper"
    assert rights["the kubelets' configuration"].startswith("get nodes/")
    assert rights["conflicting workloads"] == "list daemonsets.apps in the whole cluster"
    assert rights["the agents' rights"].startswith("create subjectaccessreviews")
    assert rights["Temper's objects"] == "get daemonsets.apps in the namespace temper"
