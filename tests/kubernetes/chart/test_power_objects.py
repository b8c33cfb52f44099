"""What power-aware placement is made of."""

import json
from base64 import b64decode

import pytest
import yaml

from temper_plugin_power.resources.definitions import definitions
from tests.kubernetes.chart.charts import CHART, ROOT

ON = "power.enabled=true"
NAME = "temper-power-extender"
TLS = f"{ON},scheduler.enabled=true,power.extender.tls.existingSecret=ours"


@pytest.fixture
def power(helm):
    return helm.render("--set", f"{ON},scheduler.enabled=true", namespace="elsewhere")


def extenders(rendered):
    text = rendered.get("ConfigMap", "temper-scheduler")["data"]["scheduler.yaml"]
    return yaml.safe_load(text)["extenders"]


def pod_of(rendered):
    return rendered.get("Deployment", NAME)["spec"]["template"]["spec"]


def test_the_default_install_adds_no_kinds_and_no_extender(helm):
    rendered = helm.render("--set", "scheduler.enabled=true")

    assert not rendered.of("CustomResourceDefinition")
    assert not rendered.has("Deployment", NAME)
    assert len(extenders(rendered)) == 1


def test_the_kinds_are_those_that_temper_prints(power):
    printed = json.loads((CHART / "files/power/crds.json").read_text())
    made = {each["metadata"]["name"]: each["spec"] for each in power.of("CustomResourceDefinition")}

    assert printed == json.loads(json.dumps(definitions())), "run temper power crds > the file"
    assert made == {each["metadata"]["name"]: each["spec"] for each in printed["items"]}


def test_the_kinds_and_their_objects_stay_after_an_uninstall_unless_they_are_to_go(helm, power):
    going = helm.render("--set", f"{ON},power.crds.keep=false")

    for each in power.of("CustomResourceDefinition"):
        assert each["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    for each in going.of("CustomResourceDefinition"):
        assert "annotations" not in each["metadata"]


def test_the_kinds_can_be_left_to_others(helm):
    rendered = helm.render("--set", f"{ON},power.crds.create=false")

    assert not rendered.of("CustomResourceDefinition")
    assert rendered.has("Deployment", NAME)


def test_the_extender_can_be_left_out(helm):
    rendered = helm.render("--set", f"{ON},power.extender.enabled=false,scheduler.enabled=true")

    assert len(rendered.of("CustomResourceDefinition")) == 3
    assert not any(NAME in each["metadata"]["name"] for each in rendered.objects)
    assert len(extenders(rendered)) == 1


def test_the_scheduler_asks_both_extenders_and_goes_on_without_them(power):
    placement, ours = extenders(power)
    (port,) = power.get("Service", NAME, "elsewhere")["spec"]["ports"]
    (container,) = pod_of(power)["containers"]

    assert "temper-placement" in placement["urlPrefix"]
    assert ours["urlPrefix"] == f"http://{NAME}.elsewhere.svc:{port['port']}"
    verbs = [ours[f"{name}Verb"] for name in ("filter", "preempt", "prioritize")]
    assert verbs == ["filter", "preempt", "prioritize"]
    assert (ours["ignorable"], ours["nodeCacheCapable"], ours["weight"]) == (True, True, 3)
    assert "enableHTTPS" not in ours
    assert "--score-scale=10" in container["args"]
    assert "--listen=0.0.0.0:9876" in container["args"]


def test_the_documented_configuration_is_that_of_the_chart(power):
    text = (ROOT / "docs/power-extender.md").read_text()
    documented = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])

    for found, described in zip(extenders(power), documented["extenders"], strict=True):
        assert found["urlPrefix"] == described["urlPrefix"].replace(".temper.", ".elsewhere.")
        for key in ("weight", "ignorable", "nodeCacheCapable", "prioritizeVerb", "httpTimeout"):
            assert found[key] == described[key]
        for key in ("filterVerb", "preemptVerb"):
            assert found.get(key) == described.get(key)


def test_with_a_secret_both_sides_speak_tls(helm):
    rendered = helm.render("--set", f"{TLS},power.extender.tls.caBundle=PEM")
    _, ours = extenders(rendered)
    pod = pod_of(rendered)
    (container,) = pod["containers"]

    assert ours["urlPrefix"] == f"https://{NAME}.temper.svc:9876"
    assert ours["enableHTTPS"] is True
    assert b64decode(ours["tlsConfig"]["caData"]) == b"PEM"
    assert ours["tlsConfig"]["serverName"] == f"{NAME}.temper.svc"
    assert "--certificate=/etc/temper/tls/tls.crt" in container["args"]
    assert {"name": "tls", "secret": {"secretName": "ours"}} in pod["volumes"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_the_rights_are_those_that_are_proven_minimal(power):
    documents = yaml.safe_load_all((ROOT / "plugins/power/extender-rbac.yaml").read_text())
    rights = {each["kind"]: each for each in documents}

    assert power.get("ClusterRole", NAME)["rules"] == rights["ClusterRole"]["rules"]
    assert pod_of(power)["serviceAccountName"] == NAME
    assert not any(each["metadata"]["name"] == NAME for each in power.of("Role"))


def test_one_extender_may_go_at_a_time(power):
    assert power.get("Deployment", NAME)["spec"]["replicas"] == 2
    assert power.get("PodDisruptionBudget", NAME)["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize(("deploy", "is_bounded"), [("true", True), ("false", False)])
def test_the_network_policy_admits_the_scheduler_that_is_known(helm, deploy, is_bounded):
    rendered = helm.render("--set", f"{ON},scheduler.enabled=true,scheduler.deploy={deploy}")

    (ingress,) = rendered.get("NetworkPolicy", NAME)["spec"]["ingress"]

    assert ("from" in ingress) is is_bounded
    assert ingress["ports"] == [{"port": "extender", "protocol": "TCP"}]
