"""What the page of the cluster is made of."""

from base64 import b64decode

import pytest
import yaml

from tests.kubernetes.chart.charts import ROOT, values_file

NAME = "temper-dashboard"
ON = "dashboard.enabled=true"
RIGHTS = {
    each["kind"]: each
    for each in yaml.safe_load_all((ROOT / "plugins/dashboard/fleet-rbac.yaml").read_text())
}
POD_RIGHTS = next(yaml.safe_load_all((ROOT / "plugins/dashboard/pod-rbac.yaml").read_text()))
INGRESS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}


@pytest.fixture
def dashboard(helm):
    return helm.render("--set", ON, namespace="elsewhere")


def spec_of(rendered):
    return rendered.get("Deployment", NAME)["spec"]["template"]["spec"]


def container_of(rendered):
    (container,) = spec_of(rendered)["containers"]
    return container


def test_the_default_install_has_no_page_of_the_cluster(helm):
    names = {each["metadata"]["name"] for each in helm.render().objects}

    assert not any(name.startswith(NAME) for name in names)


def test_the_service_leads_to_the_server_at_8090(dashboard):
    (port,) = dashboard.get("Service", NAME, "elsewhere")["spec"]["ports"]
    container = container_of(dashboard)
    (served,) = container["ports"]

    assert port["port"] == 8090
    assert port["targetPort"] == served["name"]
    assert f"--listen=0.0.0.0:{served['containerPort']}" in container["args"]
    assert "--namespace=elsewhere" in container["args"]
    assert container["args"][:2] == ["dashboard", "serve"]


def test_the_rights_are_those_that_are_proven_minimal(helm, dashboard):
    by_proxy = helm.render("--set", f"{ON},dashboard.reach=proxy")
    all_rules = RIGHTS["Role"]["rules"]

    assert by_proxy.get("Role", NAME)["rules"] == all_rules
    assert dashboard.get("Role", NAME, "elsewhere")["rules"] == [
        rule for rule in all_rules if rule["resources"] != ["pods/proxy"]
    ]
    assert dashboard.get("ClusterRole", NAME)["rules"] == RIGHTS["ClusterRole"]["rules"]
    assert "--reach=proxy" in container_of(by_proxy)["args"]
    assert "--reach=pod" in container_of(dashboard)["args"]


PARTS = ("events", "manifest", "revisions", "logs")
NEEDED = {
    "events": {"events"},
    "manifest": {"pods"},
    "revisions": {"pods", "replicasets", "controllerrevisions"},
    "logs": {"pods/log"},
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_pods_adds_the_rights_that_it_needs_and_no_more(helm, part):
    rendered = helm.render("--set", f"{ON},dashboard.podDetails.{part}=true")
    proven = [rule for rule in POD_RIGHTS["rules"] if rule["resources"][0] in NEEDED[part]]

    rules = rendered.get("ClusterRole", f"{NAME}-pods")["rules"]
    (subject,) = rendered.get("ClusterRoleBinding", f"{NAME}-pods")["subjects"]

    assert rules == proven
    assert subject["name"] == spec_of(rendered)["serviceAccountName"]
    given = [each for each in container_of(rendered)["args"] if "pod-details" in each]
    assert given == [f"--pod-details={part}"]


def test_by_default_the_page_reads_nothing_of_pods(helm, dashboard):
    off = ",".join(f"dashboard.podDetails.{part}=true" for part in PARTS)

    assert not dashboard.has("ClusterRole", f"{NAME}-pods")
    assert not dashboard.has("ClusterRoleBinding", f"{NAME}-pods")
    assert not any("pod-details" in each for each in container_of(dashboard)["args"])
    assert not helm.render("--set", off).has("ClusterRole", f"{NAME}-pods")


def test_actions_are_off_by_default_and_add_no_rights(helm):
    given = f"{ON},agent.token.create=true"
    off = helm.render("--set", given)
    on = helm.render("--set", f"{given},dashboard.actions=true")

    assert "--actions" not in container_of(off)["args"]
    assert "--actions" in container_of(on)["args"]
    for kind in ("Role", "ClusterRole"):
        assert on.get(kind, NAME)["rules"] == off.get(kind, NAME)["rules"]
    assert "agent-token" not in str(spec_of(on))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("agent.token.create=true,dashboard.reach=proxy", "needs dashboard.reach=pod"),
        ("dashboard.reach=pod", "needs agent.token.create=true"),
    ],
)
def test_actions_that_no_agent_would_take_are_refused(helm, given, why):
    refusal = helm.refusal("--set", f"{ON},dashboard.actions=true,{given}")

    assert f"dashboard.actions: {why}" in refusal


def test_the_token_is_random_and_mounted_from_its_secret(helm, dashboard):
    secret = dashboard.get("Secret", "temper-dashboard-token", "elsewhere")
    another = helm.render("--set", ON).get("Secret", "temper-dashboard-token")
    (volume,) = (each for each in spec_of(dashboard)["volumes"] if each["name"] == "token")
    (mount,) = (each for each in container_of(dashboard)["volumeMounts"] if each["name"] == "token")

    assert len(b64decode(secret["data"]["token"])) == 48
    assert secret["data"] != another["data"]
    assert volume["secret"]["secretName"] == "temper-dashboard-token"
    assert f"--token-file={mount['mountPath']}/token" in container_of(dashboard)["args"]
    assert mount["readOnly"]


def test_a_token_of_theirs_is_used_and_none_is_made(helm):
    rendered = helm.render("--set", f"{ON},dashboard.token.existingSecret=ours")
    (volume,) = (each for each in spec_of(rendered)["volumes"] if each["name"] == "token")

    assert not rendered.has("Secret", "temper-dashboard-token")
    assert volume["secret"]["secretName"] == "ours"


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ("dashboard.image.tag=9.9", "registry.temper.codes/temper:9.9"),
        ("dashboard.image.repository=mirror:5000/page,image.tag=1.2", "mirror:5000/page:1.2"),
        ("dashboard.image.repository=a/b,dashboard.image.tag=c", "a/b:c"),
        ("image.tag=1.2", "registry.temper.codes/temper:1.2"),
    ],
)
def test_the_page_may_have_an_image_of_its_own(helm, given, image):
    assert container_of(helm.render("--set", f"{ON},{given}"))["image"] == image


def test_tls_is_served_and_probed_with_a_secret(helm):
    container = container_of(helm.render("--set", f"{ON},dashboard.tls.existingSecret=tls"))

    assert "--certificate=/etc/temper/tls/tls.crt" in container["args"]
    assert "--key=/etc/temper/tls/tls.key" in container["args"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert {"name": "tls", "mountPath": "/etc/temper/tls", "readOnly": True} in container[
        "volumeMounts"
    ]


def test_a_prometheus_is_passed_on(helm, dashboard):
    rendered = helm.render("--set", f"{ON},dashboard.prometheus=http://p:9090")

    assert "--prometheus=http://p:9090" in container_of(rendered)["args"]
    assert not any("prometheus" in each for each in container_of(dashboard)["args"])


def test_the_token_and_the_authority_of_the_prometheus_are_mounted(helm, dashboard):
    given = "dashboard.prometheusToken.existingSecret=t,dashboard.prometheusCa.existingConfigMap=c"
    rendered = helm.render("--set", f"{ON},dashboard.prometheus=https://p,{given}")
    container, plain = container_of(rendered), container_of(dashboard)
    volumes = {each["name"]: each for each in spec_of(rendered)["volumes"]}
    mounts = {each["name"]: each for each in container["volumeMounts"]}

    assert volumes["prometheus-token"]["secret"]["secretName"] == "t"
    assert volumes["prometheus-ca"]["configMap"]["name"] == "c"
    for name, option, file in (
        ("prometheus-token", "--prometheus-token-file", "token"),
        ("prometheus-ca", "--prometheus-ca-file", "ca.crt"),
    ):
        assert f"{option}={mounts[name]['mountPath']}/{file}" in container["args"]
        assert mounts[name]["readOnly"]
        assert name not in {each["name"] for each in plain["volumeMounts"]}
    assert not any("prometheus" in each for each in plain["args"])


def test_the_page_is_open_to_the_namespace_and_to_whom_the_values_name(helm, tmp_path):
    values = {"dashboard": {"enabled": True, "from": [INGRESS]}}
    policy = helm.render(*values_file(tmp_path, values)).get("NetworkPolicy", NAME)["spec"]
    closed = {**values, "networkPolicy": {"from": []}}
    closed["dashboard"] = {"enabled": True}

    (rule,) = policy["ingress"]
    assert rule["from"] == [{"podSelector": {}}, INGRESS]
    assert rule["ports"] == [{"port": "page", "protocol": "TCP"}]
    nobody = helm.render(*values_file(tmp_path, closed)).get("NetworkPolicy", NAME)["spec"]
    assert nobody["ingress"] == []


def test_collectors_reach_the_page_where_its_metrics_are_scraped(helm):
    rendered = helm.render("--set", f"{ON},serviceMonitor.enabled=true")
    (rule,) = rendered.get("NetworkPolicy", NAME)["spec"]["ingress"]
    of_agents = rendered.get("NetworkPolicy", "temper-agent")["spec"]["ingress"][0]["from"]

    assert rule["from"][-1] == of_agents[-1]
    assert rule["from"][-1]["podSelector"]["matchExpressions"][0]["values"][0] == "prometheus"


def test_the_metrics_of_a_page_by_tls_are_scraped_by_tls(helm):
    given = f"{ON},serviceMonitor.enabled=true,dashboard.tls.existingSecret=tls"
    (by_tls,) = helm.render("--set", given).get("ServiceMonitor", NAME)["spec"]["endpoints"]
    plain = helm.render("--set", f"{ON},serviceMonitor.enabled=true").get("ServiceMonitor", NAME)

    assert (by_tls["scheme"], by_tls["tlsConfig"]["serverName"]) == ("https", f"{NAME}.temper.svc")
    assert "scheme" not in plain["spec"]["endpoints"][0]


def test_more_ways_out_are_of_the_page_alone(helm, everything):
    rendered = helm.render(*everything)
    policy = rendered.get("NetworkPolicy", "temper-dashboard-egress")["spec"]

    selected = policy["podSelector"]["matchLabels"]
    assert selected["app.kubernetes.io/component"] == "dashboard"
    assert policy["policyTypes"] == ["Egress"]
    assert policy["egress"][0]["ports"] == [{"protocol": "TCP", "port": 9090}]


def test_the_server_needs_no_rights_on_its_node(dashboard):
    spec = spec_of(dashboard)

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container_of(dashboard)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not any("hostPath" in volume for volume in spec["volumes"])
