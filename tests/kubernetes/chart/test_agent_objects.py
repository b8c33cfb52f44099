"""What the chart's objects of the agent mean."""

import tomllib

import pytest
import yaml

from temper_core import Pod, Tier
from temper_core.plan.assign import tier_of
from temper_core.settings import Settings
from tests.control_plane.cluster import RBAC, ROOT
from tests.kubernetes.chart.charts import CHART, values_file


def test_a_pod_of_each_class_gets_the_tier_that_the_class_is_called_by(helm):
    classes = helm.render().of("PriorityClass")

    found = {
        each["metadata"]["name"]: tier_of(
            Pod(
                uid="1",
                namespace="shop",
                name="a",
                priority=each["value"],
                priority_class=each["metadata"]["name"],
            ),
            Settings().priority_mapping,
        )[0]
        for each in classes
    }

    assert found == {f"temper-{tier.value}": tier for tier in Tier}


def test_no_class_is_everybodys_and_the_lowest_two_evict_nobody(helm):
    classes = {each["metadata"]["name"]: each for each in helm.render().of("PriorityClass")}

    assert not any(each.get("globalDefault") for each in classes.values())
    polite = {name for name, each in classes.items() if each["preemptionPolicy"] == "Never"}
    assert polite == {"temper-low", "temper-background"}


def test_the_agents_rights_are_those_that_are_proven_minimal(helm):
    rendered = helm.render()
    account, role, binding = RBAC

    assert rendered.get("ServiceAccount", account["metadata"]["name"], "temper")
    assert rendered.get("ClusterRole", "temper-agent")["rules"] == role["rules"]
    found = rendered.get("ClusterRoleBinding", "temper-agent")
    assert (found["roleRef"], found["subjects"]) == (binding["roleRef"], binding["subjects"])


def test_the_agent_is_not_privileged_and_has_no_more_capabilities_than_values_explain(helm):
    spec = _spec(helm.render())
    rights = spec["containers"][0]["securityContext"]
    said = (CHART / "values.yaml").read_text()

    assert not {"hostNetwork", "hostIPC"} & set(spec)
    assert rights["privileged"] is False
    assert rights["allowPrivilegeEscalation"] is False
    assert rights["capabilities"]["drop"] == ["ALL"]
    for capability in rights["capabilities"]["add"]:
        assert f"  #   {capability} " in said, "a capability without a reason"


def test_the_agent_goes_everywhere_and_is_evicted_last(helm):
    spec = _spec(helm.render())

    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["hostPID"] is True
    quota = helm.render().get("ResourceQuota", "temper-critical-pods")
    assert (
        spec["priorityClassName"] in quota["spec"]["scopeSelector"]["matchExpressions"][0]["values"]
    )


def test_the_agent_has_no_cpu_limit(helm):
    assert _spec(helm.render())["containers"][0]["resources"] == {
        "requests": {"cpu": "50m", "memory": "256Mi"},
        "limits": {"memory": "1Gi"},
    }


def test_no_image_stands_between_a_node_and_its_agent(helm, everything):
    for _, _, template in helm.render(*everything).pods():
        spec = template["spec"]
        assert "initContainers" not in spec
        assert {each["imagePullPolicy"] for each in spec["containers"]} == {"IfNotPresent"}


def test_without_a_token_the_port_only_reads(helm):
    rendered = helm.render()

    assert not rendered.of("Secret")
    assert "token_file" not in rendered.settings()


def test_a_token_is_as_long_as_the_agent_asks(helm):
    secret = helm.render("--set", "agent.token.create=true").get("Secret", "temper-agent-token")

    assert len(secret["data"]["token"]) >= 4 * 48 // 3


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({}, "registry.temper.codes/temper:{appVersion}"),
        ({"tag": "1.2.3"}, "registry.temper.codes/temper:1.2.3"),
        (
            {"digest": "sha256:" + "a" * 64, "tag": "1.2.3"},
            "registry.temper.codes/temper@sha256:" + "a" * 64,
        ),
        ({"repository": "mirror:5000/x/temper"}, "mirror:5000/x/temper:{appVersion}"),
    ],
    ids=["default", "tag", "digest", "mirror"],
)
def test_every_pod_of_ours_runs_the_same_image(helm, tmp_path, image, reference):
    values = {"image": image, "webhook": {"enabled": True}, "scheduler": {"enabled": True}}
    rendered = helm.render(*values_file(tmp_path, values))
    application = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]

    found = {
        container["image"]
        for _, name, template in rendered.pods()
        for container in template["spec"]["containers"]
        if name != "temper-scheduler"
    }

    assert found == {reference.format(appVersion=application)}


def test_everybody_pulls_by_the_same_secrets(helm):
    rendered = helm.render("--set", "image.pullSecrets[0].name=registry,webhook.enabled=true")

    for _, _, template in rendered.pods():
        assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def _spec(rendered, name="temper-agent"):
    return rendered.get("DaemonSet", name)["spec"]["template"]["spec"]


def test_by_default_the_port_is_open_to_the_namespace_and_to_collectors_of_metrics(helm):
    policy = helm.render().get("NetworkPolicy", "temper-agent")["spec"]
    (rule,) = policy["ingress"]
    namespace, own, collectors = rule["from"]

    assert policy["policyTypes"] == ["Ingress"]
    assert policy["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "agent"
    assert rule["ports"] == [{"port": "metrics", "protocol": "TCP"}]
    assert namespace == {"podSelector": {}}
    assert "prometheus" in collectors["podSelector"]["matchExpressions"][0]["values"]
    assert collectors["namespaceSelector"]["matchExpressions"] == [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": ["monitoring", "observability", "prometheus"],
        }
    ]
    assert "app.kubernetes.io/instance" in own["podSelector"]["matchLabels"]


def test_peers_are_replaced_and_policies_can_be_left_out(helm, tmp_path):
    peers = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    given = helm.render(*values_file(tmp_path, {"networkPolicy": {"from": peers}}))

    assert given.get("NetworkPolicy", "temper-agent")["spec"]["ingress"][0]["from"][0] == peers[0]
    assert not helm.render("--set", "networkPolicy.enabled=false").of("NetworkPolicy")


def test_collectors_are_admitted_from_the_namespaces_that_are_given_and_from_no_other(
    helm, tmp_path
):
    def peers(namespaces):
        given = {"networkPolicy": {"collectorNamespaces": namespaces}}
        policy = helm.render(*values_file(tmp_path, given)).get("NetworkPolicy", "temper-agent")
        return [peer for rule in policy["spec"]["ingress"] for peer in rule["from"]]

    (collectors,) = (peer for peer in peers(["obs"]) if "namespaceSelector" in peer)

    assert collectors["namespaceSelector"]["matchExpressions"][0]["values"] == ["obs"]
    assert not [peer for peer in peers([]) if "namespaceSelector" in peer]


API_SERVER = [{"cidr": "10.0.0.1/32", "port": 6443}]
NAMES = {"protocol": "UDP", "port": 53}


def _ways_out(helm, tmp_path, **policy):
    given = {"networkPolicy": {"apiServer": API_SERVER, **policy}}
    rendered = helm.render(*values_file(tmp_path, given))
    return rendered.get("NetworkPolicy", "temper-egress")["spec"]["egress"]


def test_the_way_out_leads_to_named_peers_only_and_names_come_from_the_clusters_dns(helm, tmp_path):
    rules = _ways_out(helm, tmp_path)
    (dns,) = (rule for rule in rules if NAMES in rule.get("ports", []))

    assert all(rule["to"] for rule in rules)
    assert [port["port"] for port in dns["ports"]] == [53, 53]
    assert dns["to"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        },
        {"ipBlock": {"cidr": "169.254.20.10/32"}},
    ]


def test_another_dns_can_be_given_and_none(helm, tmp_path):
    peers = [{"ipBlock": {"cidr": "10.96.0.10/32"}}]

    assert peers in [rule["to"] for rule in _ways_out(helm, tmp_path, dns=peers)]
    without = _ways_out(helm, tmp_path, dns=[])
    assert all(rule["to"] for rule in without)
    assert not [rule for rule in without if NAMES in rule.get("ports", [])]


def test_only_on_request_the_agents_read_their_node_twin_with_the_rights_that_are_written_down(
    helm,
):
    role, binding = yaml.safe_load_all((ROOT / "plugins/power/node-rbac.yaml").read_text())
    usual, asked = helm.render(), helm.render("--set", "agent.powerTwin=true")
    config = asked.get("ConfigMap", "temper-agent")["data"]["agent.toml"]
    name = role["metadata"]["name"]

    assert name not in {each["metadata"]["name"] for each in usual.of("ClusterRole")}
    assert asked.get("ClusterRole", name)["rules"] == role["rules"]
    found = asked.get("ClusterRoleBinding", name)
    assert (found["roleRef"], found["subjects"]) == (binding["roleRef"], binding["subjects"])
    assert tomllib.loads(config)["plugins"]["power"]["node"] == {"twin_from_cluster": True}
    assert asked.get("ValidatingAdmissionPolicyBinding", "temper-agent-twins")


@pytest.mark.parametrize(("powercap", "is_read_only"), [("readOnly", True), ("writable", False)])
def test_power_zones_are_mounted_where_no_runtime_masks_them(helm, powercap, is_read_only):
    rendered = helm.render("--set", f"agent.powercap={powercap}")
    spec = _spec(rendered)

    volumes = {each["name"]: each for each in spec["volumes"]}
    mounts = {each["name"]: each for each in spec["containers"][0]["volumeMounts"]}
    table = tomllib.loads(rendered.get("ConfigMap", "temper-agent")["data"]["agent.toml"])
    assert volumes["powercap"]["hostPath"]["path"] == "/sys/devices/virtual/powercap"
    assert mounts["powercap"]["readOnly"] is is_read_only
    assert table["plugins"]["power"]["node"] == {"powercap_path": mounts["powercap"]["mountPath"]}


def test_power_zones_are_not_mounted_by_default(helm):
    spec = _spec(helm.render())

    assert "powercap" not in {each["name"] for each in spec["volumes"]}
    assert "powercap" not in {each["name"] for each in spec["containers"][0]["volumeMounts"]}
