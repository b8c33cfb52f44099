"""The chart against a real API server: judged, installed, changed, taken back, and gone."""

import base64
import shutil

import pytest

from tests.control_plane.cluster import PATCHES, unique, wait_until
from tests.kubernetes.chart.charts import CHART
from tests.kubernetes.chart.releases import (
    NAME,
    NAMESPACE,
    apply_dry,
    everything_in,
    monitoring_definitions,
)

PROFILE = """
schema_version = 1
id = "my-service"
[[thread_groups]]
name = "rest"
treatment = "{}"
"""
DAEMONSET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/temper-agent"
HOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/temper-overcommit"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "osImage",
    "operatingSystem",
    "architecture",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
)
QUIET = ("--set", "restoreOnUninstall=false")


@pytest.fixture
def monitoring(plane):
    """The Prometheus operator's kinds, as far as an API server needs to know them."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = [plane.call("POST", path, each) for each in monitoring_definitions()]
    for each in made:
        plural = each["spec"]["names"]["plural"]
        served = f"/apis/monitoring.coreos.com/v1/{plural}"
        wait_until(lambda at=served: plane.client.get(at).is_success, f"{plural} are served")
    yield
    for each in made:
        plane.call("DELETE", f"{path}/{each['metadata']['name']}")
    wait_until(lambda: not _knows_monitoring(plane), "the definitions are gone", 60)


@pytest.mark.usefixtures("monitoring")
def test_the_api_server_takes_every_object_without_a_doubt(helm, plane, everything):
    objects = helm.render(*everything).objects

    done = apply_dry(plane, objects)

    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower()
    assert len(done.stdout.splitlines()) == len(objects)


@pytest.mark.usefixtures("monitoring")
def test_helm_tries_an_install_on_the_server_and_makes_nothing(plane, release, everything):
    before = everything_in(plane)

    done = release.install(*everything, "--dry-run=server")

    assert done.returncode == 0, done.stderr
    assert everything_in(plane) == before


def test_the_server_keeps_what_it_is_given_as_it_was_written(helm, plane, release):
    on = "webhook.enabled=true,scheduler.enabled=true,networkPolicy.enabled=true"
    # A rendering without the cluster would make another authority.
    given = "webhook.existingSecret=ours,webhook.caBundle=x"
    options = ("--set", f"{on},{given},scheduler.image.tag=v1.36.0")
    release.installed(*options)
    objects = helm.render(*options, "--no-hooks").objects

    done = apply_dry(plane, objects)

    # What the server writes otherwise is out of step for ever in the eyes of Argo CD.
    assert done.returncode == 0, done.stderr


def test_a_service_monitor_without_its_definition_is_refused_by_name(release):
    done = release.install("--set", "serviceMonitor.enabled=true", *QUIET)

    assert done.returncode != 0
    assert 'kind "ServiceMonitor"' in done.stderr


@pytest.mark.usefixtures("monitoring")
def test_everything_is_installed_and_uninstalled(plane, release, everything):
    release.installed(*everything)

    assert plane.call("GET", DAEMONSET)["metadata"]["generation"] == 1
    assert plane.call("GET", HOOK)["webhooks"]
    classes = plane.call("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")["items"]
    assert len([each for each in classes if each["metadata"]["name"].startswith("temper-")]) == 5


def test_an_edited_profile_rolls_the_agents_and_a_rollback_takes_it_back(plane, release, tmp_path):
    file = tmp_path / "my-service.toml"
    option = ("--set-file", f"agent.profiles.my-service\\.toml={file}", *QUIET)
    file.write_text(PROFILE.format("normal"))
    release.installed(*option)
    first = plane.call("GET", DAEMONSET)

    release.upgraded(*option)
    assert plane.call("GET", DAEMONSET)["metadata"]["generation"] == 1, "nothing had changed"

    file.write_text(PROFILE.format("boost"))
    release.upgraded(*option)
    second = plane.call("GET", DAEMONSET)
    assert second["metadata"]["generation"] == 2
    assert second["spec"]["template"] != first["spec"]["template"]
    assert _profile(plane) == PROFILE.format("boost")

    release.rolled_back(1)
    third = plane.call("GET", DAEMONSET)
    assert third["metadata"]["generation"] == 3
    assert third["spec"]["template"] == first["spec"]["template"]
    assert _profile(plane) == PROFILE.format("normal")


def test_an_upgrade_keeps_the_tokens_and_the_webhooks_authority(plane, release):
    on = "agent.token.create=true,webhook.enabled=true,dashboard.enabled=true"
    options = ("--set", on, *QUIET)
    release.installed(*options)
    of_page = plane.call("GET", f"{SECRETS}/temper-dashboard-token")["data"]
    token = plane.call("GET", f"{SECRETS}/temper-agent-token")["data"]
    authority = plane.call("GET", f"{SECRETS}/temper-webhook-tls")["data"]

    release.upgraded(*options, "--set", "webhook.timeoutSeconds=3")
    release.rolled_back(1)
    release.upgraded(*options, "--set", "webhook.timeoutSeconds=4")

    (hook,) = plane.call("GET", HOOK)["webhooks"]
    assert hook["timeoutSeconds"] == 4
    assert hook["clientConfig"]["caBundle"] == authority["ca.crt"]
    assert plane.call("GET", f"{SECRETS}/temper-webhook-tls")["data"] == authority
    assert plane.call("GET", f"{SECRETS}/temper-agent-token")["data"] == token
    assert plane.call("GET", f"{SECRETS}/temper-dashboard-token")["data"] == of_page


@pytest.fixture
def chart_of_long_ago(tmp_path):
    """The chart with a clock that stands at the beginning of the epoch."""
    chart = tmp_path / "temper"
    shutil.copytree(CHART, chart)
    template = chart / "templates/webhook-configuration.yaml"
    text = template.read_text()
    assert "$now := now | unixEpoch" in text
    template.write_text(text.replace("$now := now | unixEpoch", "$now := 1000"))
    return chart


def test_an_upgrade_replaces_an_old_authority_and_trusts_both(plane, release, chart_of_long_ago):
    options = ("--set", "webhook.enabled=true", *QUIET)
    done = release.helm.run("install", NAME, chart_of_long_ago, "--namespace", NAMESPACE, *options)
    assert done.returncode == 0, done.stderr
    before = plane.call("GET", f"{SECRETS}/temper-webhook-tls")["data"]

    release.upgraded(*options)

    after = plane.call("GET", f"{SECRETS}/temper-webhook-tls")["data"]
    (hook,) = plane.call("GET", HOOK)["webhooks"]
    assert after["ca.crt"] != before["ca.crt"]
    trusted = base64.b64decode(hook["clientConfig"]["caBundle"])
    assert trusted == b"".join(base64.b64decode(each["ca.crt"]) for each in (after, before))


def test_switching_the_canary_on_and_off_leaves_the_main_one_alone_in_the_end(plane, release):
    canary = "agent.canary.enabled=true,agent.canary.nodeSelector.temper-canary=true"
    path = f"{DAEMONSET}-canary"
    release.installed(*QUIET)
    before = plane.call("GET", DAEMONSET)["spec"]

    release.upgraded("--set", canary, *QUIET)
    assert (
        plane.call("GET", path)["spec"]["template"]["spec"]["nodeSelector"]["temper-canary"]
        == "true"
    )
    release.upgraded("--set", "image.tag=0.1.0", *QUIET)

    assert plane.client.get(path).status_code == 404
    assert plane.call("GET", DAEMONSET)["spec"] == before


def test_classes_of_somebody_else_are_refused_by_name_or_left_alone(plane, release):
    theirs = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "temper-critical"},
        "value": 1_000_000,
    }
    plane.make(theirs)
    try:
        refused = release.install(*QUIET)
        assert refused.returncode != 0
        assert 'PriorityClass "temper-critical"' in refused.stderr

        release.uninstalled()
        release.installed("--set", "priorityClasses.create=false", *QUIET)
        release.uninstalled()
        assert plane.get("PriorityClass", "temper-critical")["value"] == 1_000_000
    finally:
        plane.delete(theirs)


def test_a_namespace_that_forbids_the_agents_is_told_of(release):
    notes = release.install("--dry-run=server", *QUIET, namespace="baseline").stdout

    assert "WARNING: the namespace baseline enforces the Pod Security level baseline" in notes


def test_pods_are_of_the_pod_security_level_that_the_documentation_says(helm, plane, everything):
    rendered = helm.render(*everything, namespace="restricted")

    refused = {
        workload
        for kind, workload, template in rendered.pods()
        if "violates PodSecurity" in apply_dry(plane, [_pod(template, kind)]).stderr
    }

    assert refused == {"temper-agent", "temper-agent-canary"}


@pytest.mark.parametrize(("kernel", "warns"), [("5.14.0-503.el9", True), ("6.12.31+", False)])
def test_notes_warn_where_no_node_can_enforce(plane, release, kernel, warns):
    node = unique("node")
    plane.node(node)
    change = {"status": {"nodeInfo": {**dict.fromkeys(NODE_INFO, "x"), "kernelVersion": kernel}}}
    plane.call("PATCH", f"/api/v1/nodes/{node}/status", change, **PATCHES)

    notes = release.install("--dry-run=server", *QUIET).stdout

    assert ("WARNING: no node has Linux 6.12" in notes) is warns
    plane.without_node(node)


def test_notes_warn_where_nothing_is_enforced_by_the_values(release):
    options = ("--set", "agent.settings.scheduler.enforce=false,webhook.enabled=true", *QUIET)

    notes = release.installed(*options)

    assert "WARNING: agent.settings.scheduler.enforce is false" in notes
    assert "WARNING: webhook.enabled lowers CPU requests" in notes
    assert "kubectl annotate node --all temper.codes/safe-mode-requested=true" in notes


def _knows_monitoring(plane):
    """Whether the group is served, or listed still, which it is a moment longer."""
    listed = plane.call("GET", "/apis")["groups"]
    return (
        any(group["name"] == "monitoring.coreos.com" for group in listed)
        or plane.client.get("/apis/monitoring.coreos.com/v1").is_success
    )


def _profile(plane):
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/temper-profiles"
    return plane.call("GET", path)["data"]["my-service.toml"]


def _pod(template, kind):
    spec = {**template["spec"]}
    spec.pop("priorityClassName", None)
    metadata = {"name": f"of-{kind.lower()}", "namespace": "restricted"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
