"""What the power operator of the chart is made of."""

import pytest
import yaml

from tests.kubernetes.chart.charts import ROOT

ON = "power.enabled=true"
NAME = "temper-power-operator"
SETTINGS = "agent.settings.plugins.power.operator"
LABELS = f"{SETTINGS}.dry_run=false"
EVICTS = f"{SETTINGS}.rescheduler.enabled=true"


@pytest.fixture
def operator(helm):
    return helm.render("--set", ON, namespace="elsewhere")


def rights(rules):
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def written(kind):
    documents = yaml.safe_load_all((ROOT / "plugins/power/operator-rbac.yaml").read_text())
    return rights(next(each["rules"] for each in documents if each["kind"] == kind))


def made(rendered):
    return rights(rendered.get("ClusterRole", NAME)["rules"])


TOUCHING = {("", "nodes", "patch")}
EVICTING = {
    ("", "pods/eviction", "create"),
    ("apps", "replicasets", "patch"),
    ("apps", "statefulsets", "patch"),
    ("batch", "jobs", "patch"),
}


def test_the_default_install_has_no_operator(helm):
    assert not helm.render().has("Deployment", NAME)


def test_the_operator_can_be_left_out(helm):
    rendered = helm.render("--set", f"{ON},power.operator.enabled=false")

    assert not any(NAME in each["metadata"]["name"] for each in rendered.objects)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (ON, TOUCHING | EVICTING),
        (f"{ON},{LABELS}", EVICTING),
        (f"{ON},{EVICTS}", TOUCHING),
        (f"{ON},{LABELS},{EVICTS}", set()),
    ],
)
def test_the_rights_follow_from_the_settings(helm, given, missing):
    assert made(helm.render("--set", given)) == written("ClusterRole") - missing


def test_the_lease_is_the_only_object_of_its_namespace_that_it_may_change(operator):
    role = operator.get("Role", NAME, "elsewhere")

    lease = operator.get("Lease", NAME, "elsewhere")

    assert lease["metadata"]["name"] == NAME
    assert written("Role") - rights(role["rules"]) == {("coordination.k8s.io", "leases", "create")}
    assert role["rules"][0]["resourceNames"] == [NAME]


def test_no_other_account_may_label_nodes_by_it(helm):
    before, after = helm.render(), helm.render("--set", f"{ON},{LABELS}")

    agents = [each.get("ClusterRole", "temper-agent")["rules"] for each in (before, after)]
    assert agents[0] == agents[1]
    assert not made(after) & {("", "nodes", "update"), ("", "nodes/status", "patch")}


def test_the_operator_reads_the_settings_and_has_no_powers(operator):
    pod = operator.get("Deployment", NAME)["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert pod["serviceAccountName"] == NAME
    assert container["args"] == [
        *("power", "operator", "--listen=0.0.0.0:9877"),
        *("--namespace=elsewhere", "--settings=/etc/temper/agent.toml"),
    ]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "operator"}


def test_only_readers_of_metrics_reach_it(operator):
    (ingress,) = operator.get("NetworkPolicy", NAME)["spec"]["ingress"]

    assert ingress["ports"] == [{"port": "operator", "protocol": "TCP"}]
    assert ingress["from"]


def test_the_operator_has_the_thread_profiles_of_the_agents(helm):
    def mounts(rendered):
        spec = rendered.get("Deployment", NAME)["spec"]["template"]["spec"]
        return {each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}

    without = helm.render("--set", ON)
    given = helm.render("--set", ON, "--set-string", r"agent.profiles.db\.toml=id = 1")

    assert mounts(given) - mounts(without) == {"/etc/temper/profiles"}
