"""Every rendering hangs together, whatever is turned on."""

import subprocess

import pytest
import yaml

from tests.kubernetes.chart.charts import CHART, WORKLOADS, values_file

NOT_NAMESPACED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
CANARY = {"enabled": True, "nodeSelector": {"temper-canary": "true"}}
DIGEST = "sha256:" + "0" * 64
OPTIONAL = (
    "scheduler",
    "webhook",
    "power",
    "dashboard",
    "networkPolicy",
    "serviceMonitor",
    "prometheusRule",
)
MATRIX = {
    "defaults": {},
    "canary": {"agent": {"canary": CANARY}},
    "canary of another image": {"agent": {"canary": {**CANARY, "image": {"tag": "9.9.9"}}}},
    "canary of several labels": {
        "agent": {"canary": {"enabled": True, "nodeSelector": {"a": "1", "b": "2"}}}
    },
    "no rights": {"rbac": {"create": False}},
    "no policy of nodes": {"rbac": {"nodePolicy": False}},
    "an account of theirs": {"serviceAccount": {"create": False, "name": "theirs"}},
    "a token": {"agent": {"token": {"create": True}}},
    "a token of theirs": {"agent": {"token": {"create": True, "existingSecret": "theirs"}}},
    "pull secrets": {"image": {"pullSecrets": [{"name": "registry"}]}},
    "a digest": {"image": {"digest": DIGEST}},
    "another registry": {"image": {"repository": "mirror.example:5000/a/temper", "tag": "1.2"}},
    "tolerations": {"agent": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}},
    "no tolerations": {"agent": {"tolerations": []}},
    "no PriorityClasses": {"priorityClasses": {"create": False}},
    "no quota": {"resourceQuota": {"create": False}},
    "nothing restored": {"restoreOnUninstall": False},
    "privileged": {"agent": {"securityContext": {"privileged": True}, "podSecurityContext": {}}},
    "IPv6": {"listen": "::", "webhook": {"enabled": True}, "scheduler": {"enabled": True}},
    "another port": {"agent": {"port": 9200}},
    "all nodes at once": {
        "agent": {
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}
        }
    },
    "no defaults": {
        "agent": {
            "settings": None,
            "profiles": None,
            "nodeSelector": None,
            "nodeExpressions": None,
            "canary": {**CANARY, "settings": None},
        },
        "hookTolerations": None,
    },
    "by hand": {"agent": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
    "scheduler of theirs": {"scheduler": {"enabled": True, "deploy": False}},
    "policies without a way out": {
        "networkPolicy": {"enabled": True, "apiServer": [{"cidr": "10.0.0.1/32", "port": 443}]}
    },
    **{f"{top} alone": {top: {"enabled": True}} for top in OPTIONAL},
    "dashboards alone": {"grafanaDashboards": {"enabled": True}},
    "density without rights": {
        "scheduler": {"enabled": True},
        "webhook": {"enabled": True},
        "rbac": {"create": False},
    },
}


@pytest.fixture(scope="module", params=[*MATRIX, "everything"])
def rendered(request, helm, tmp_path_factory, everything):
    if request.param == "everything":
        return helm.render(*everything)
    return helm.render(*values_file(tmp_path_factory.mktemp("values"), MATRIX[request.param]))


def test_the_chart_lints_strictly(helm, everything):
    assert "1 chart(s) linted, 0 chart(s) failed" in helm.said("lint", "--strict", CHART)
    assert "0 chart(s) failed" in helm.said("lint", "--strict", CHART, *everything)


def test_the_packaged_chart_is_the_same_and_holds_no_test_values(helm, tmp_path):
    helm.said("package", CHART, "--destination", tmp_path)
    (package,) = tmp_path.glob("temper-*.tgz")
    names = subprocess.run(
        ["tar", "-tzf", package], check=True, capture_output=True, text=True
    ).stdout.splitlines()

    assert "temper/values.schema.json" in names
    assert not [name for name in names if name.startswith("temper/ci/")]
    packed = helm.said("template", "temper", package, "-n", "temper")
    assert packed == helm.said("template", "temper", CHART, "-n", "temper")


def test_objects_are_complete_and_none_is_there_twice(rendered):
    keys = [
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
        for each in rendered.objects
    ]

    assert len(keys) == len(set(keys))
    assert all(each["apiVersion"] for each in rendered.objects)


def test_objects_live_in_the_releases_namespace(rendered):
    for each in rendered.objects:
        namespace = each["metadata"].get("namespace")
        if each["kind"] in NOT_NAMESPACED:
            assert namespace is None, each
        elif each["kind"] == "RoleBinding" and namespace == "kube-system":
            assert each["roleRef"]["name"] == "extension-apiserver-authentication-reader"
        else:
            assert namespace == "temper", each


def test_objects_say_that_they_are_of_this_release(rendered):
    for each in rendered.objects:
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "temper", each
        assert labels["app.kubernetes.io/instance"] == "temper"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"


def test_whatever_selects_pods_finds_those_that_it_is_about(rendered):
    labels = {
        name: (template["metadata"].get("labels") or {}) for _, name, template in rendered.pods()
    }
    for each in rendered.objects:
        for selector in _selectors(each):
            found = {name for name, has in labels.items() if selector.items() <= has.items()}
            assert found, each
            if each["kind"] in WORKLOADS:
                assert found == {each["metadata"]["name"]}, each


def test_pods_use_only_what_is_made_or_named_by_the_values(rendered):
    theirs = {("Secret", "theirs"), ("Secret", "registry"), ("ServiceAccount", "theirs")}
    made = {(each["kind"], each["metadata"]["name"]) for each in rendered.objects} | theirs

    for _, name, template in rendered.pods():
        assert set(_used(template["spec"])) <= made, name


def test_mounts_have_their_volumes_and_volumes_their_mounts(rendered):
    for _, name, template in rendered.pods():
        volumes = [each["name"] for each in template["spec"].get("volumes", [])]
        mounts = [
            mount["name"]
            for container in template["spec"]["containers"]
            for mount in container.get("volumeMounts", [])
        ]
        assert sorted(volumes) == sorted(mounts), name


def test_ports_and_probes_are_of_the_container(rendered):
    for _, _, template in rendered.pods():
        for container in template["spec"]["containers"]:
            ports = {each["name"] for each in container.get("ports", [])}
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if probe in container:
                    assert container[probe]["httpGet"]["port"] in ports


def test_services_and_policies_name_ports_that_pods_have(rendered):
    ports = {
        port["name"]
        for _, _, template in rendered.pods()
        for container in template["spec"]["containers"]
        for port in container.get("ports", [])
    }
    asked = {
        port["targetPort"] for each in rendered.of("Service") for port in each["spec"]["ports"]
    }
    for policy in rendered.of("NetworkPolicy"):
        for rule in policy["spec"].get("ingress", []):
            asked |= {port["port"] for port in rule["ports"]}

    assert asked <= ports


def test_bindings_bind_what_is_there(rendered):
    accounts = {each["metadata"]["name"] for each in rendered.of("ServiceAccount")} | {"theirs"}
    roles = {
        each["metadata"]["name"] for kind in ("Role", "ClusterRole") for each in rendered.of(kind)
    }
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for each in rendered.of(kind):
            assert {subject["name"] for subject in each["subjects"]} <= accounts
            role = each["roleRef"]["name"]
            assert role in roles or role.startswith(("system:", "extension-apiserver-")), each


def test_everybody_but_the_agent_has_no_rights_on_the_node(rendered):
    for kind, name, template in rendered.pods():
        if kind == "DaemonSet":
            continue
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostPID", "hostNetwork", "hostIPC"} & set(spec)
        assert not any("hostPath" in volume for volume in spec.get("volumes", []))
        for container in spec["containers"]:
            rights = container["securityContext"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert rights["readOnlyRootFilesystem"] is True
            assert rights["allowPrivilegeEscalation"] is False


def test_hooks_run_at_tests_and_before_a_deletion_only_and_leave_nothing(rendered):
    for each in rendered.objects:
        annotations = each["metadata"].get("annotations") or {}
        if hook := annotations.get("helm.sh/hook"):
            # An upgrade or a rollback that waits for a hook would wait for an image.
            assert hook in ("test", "pre-delete")
            left = set(annotations["helm.sh/hook-delete-policy"].split(","))
            assert left == {"before-hook-creation", "hook-succeeded", "hook-failed"}


def test_hooks_go_to_no_node_that_is_gone_or_runs_no_linux(rendered):
    gone = ("not-ready", "unreachable", "unschedulable", "network-unavailable")
    for each in rendered.objects:
        if "helm.sh/hook" in (each["metadata"].get("annotations") or {}):
            spec = each["spec"] if each["kind"] == "Pod" else each["spec"]["template"]["spec"]
            assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
            tolerated = {toleration.get("key") for toleration in spec.get("tolerations", [])}
            # Without a key any taint is tolerated.
            assert not tolerated & {None, *(f"node.kubernetes.io/{taint}" for taint in gone)}


@pytest.mark.parametrize("name", ["123", "true", "null"])
def test_the_name_of_a_release_is_text(helm, name):
    done = helm.run("template", name, CHART, "--namespace", "temper")

    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    labels = {each["metadata"]["labels"]["app.kubernetes.io/instance"] for each in found}
    assert labels == {name}
    assert all(each["app.kubernetes.io/instance"] == name for one in found for each in _chosen(one))


def _chosen(each):
    return [labels for labels in _selectors(each) if "app.kubernetes.io/instance" in labels]


def _selectors(each):
    spec = each.get("spec", {})
    if each["kind"] == "Service":
        yield spec["selector"]
    elif each["kind"] == "NetworkPolicy":
        yield spec["podSelector"]["matchLabels"]
    elif each["kind"] in ("DaemonSet", "Deployment", "PodDisruptionBudget"):
        yield spec["selector"]["matchLabels"]


def _used(spec):
    if "serviceAccountName" in spec:
        yield "ServiceAccount", spec["serviceAccountName"]
    for secret in spec.get("imagePullSecrets", []):
        yield "Secret", secret["name"]
    for volume in spec.get("volumes", []):
        if "configMap" in volume:
            yield "ConfigMap", volume["configMap"]["name"]
        elif "secret" in volume:
            yield "Secret", volume["secret"]["secretName"]
