"""What the chart's objects of the agent mean."""

import itertools
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from temper_core import Pod, Tier
from temper_core.plan.assign import tier_of
from temper_core.settings import Settings, load
from tests.kubernetes.chart.charts import CHART, values_file
from tests.kubernetes.cluster import RBAC

PROFILE = """
schema_version = 1
id = "my-service"
[fingerprint]
images = ["*/my-service:*"]
[[thread_groups]]
name = "rest"
treatment = "normal"
"""


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

    assert not any(each["globalDefault"] for each in classes.values())
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


def test_the_agent_reads_its_settings_where_they_are_mounted(helm, tmp_path):
    rendered = helm.render("--set", "agent.token.create=true")
    container = _spec(rendered)["containers"][0]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    path = tmp_path / "agent.toml"
    path.write_text(rendered.settings())

    found = load(path).settings

    assert container["args"][:3] == ["agent", "--settings", "/etc/temper/agent.toml"]
    assert mounts["/etc/temper/agent.toml"]["subPath"] == "agent.toml"
    assert found.profiles.directory in mounts
    assert found.server.token_file.rpartition("/")[0] in mounts
    for file in (found.safe_mode.file, found.safe_mode.state, found.server.socket):
        assert file.rpartition("/")[0] in mounts
    assert found.scheduler.steering_pin.startswith("/sys/fs/bpf/")
    assert found.pods.source == "kubernetes"
    assert found.server.listen == "0.0.0.0:9100"


def test_without_a_token_the_port_only_reads(helm):
    rendered = helm.render()

    assert not rendered.of("Secret")
    assert "token_file" not in rendered.settings()


def test_a_token_is_as_long_as_the_agent_asks(helm):
    secret = helm.render("--set", "agent.token.create=true").get("Secret", "temper-agent-token")

    assert len(secret["data"]["token"]) >= 4 * 48 // 3


def test_settings_arrive_as_they_were_given(helm, tmp_path):
    given = {
        "priority_mapping": {"critical": 1_500_000, "low": -250},
        "plan": {"system_processes": ["kubelet", "crio"]},
        "tiers": {"high": {"util_range": [0.3, 0.65], "slice_us": 8000}},
        "scheduler": {"start_deadline_s": 90, "enforce": False},
        "workloads": [{"name": "db", "process": "postgres", "tier": "high"}],
        "plugins": {"kubernetes": {"stale_after_s": 2.5}, "other": {"a b": 'ü "quoted" <&>\n'}},
    }
    path = tmp_path / "agent.toml"
    path.write_text(helm.render(*values_file(tmp_path, {"agent": {"settings": given}})).settings())

    found = load(path).settings

    assert found.priority_mapping.critical == 1_500_000
    assert found.priority_mapping.low == -250
    assert found.plan.system_processes == ("kubelet", "crio")
    assert found.tiers.high.util_range == (0.3, 0.65)
    assert found.scheduler.start_deadline_s == 90
    assert not found.scheduler.enforce
    assert found.workloads[0].tier is Tier.HIGH
    assert found.plugins == given["plugins"]


SCALARS = (
    st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(max_codepoint=0x1FFF, exclude_categories=["Cc"]), max_size=8)
    | st.text("\n\t\\\"'<&", max_size=4)
)
TABLES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab-. \"'é", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(st.text("ab-. \"'é", min_size=1, max_size=4), TABLES, max_size=4))
def test_whatever_a_plugin_is_given_reaches_it_unchanged(helm, tmp_path, table):
    values = {"agent": {"settings": {"plugins": {"mine": table}}}}

    toml = helm.render(*values_file(tmp_path, values)).settings()

    assert tomllib.loads(toml)["plugins"]["mine"] == table


def test_an_edited_profile_rolls_the_agents_and_changes_nothing_else(helm, tmp_path):
    file = tmp_path / "my-service.toml"
    option = f"agent.profiles.my-service\\.toml={file}"
    file.write_text(PROFILE)
    before = helm.render("--set-file", option)
    file.write_text(PROFILE.replace("normal", "boost"))
    after = helm.render("--set-file", option)

    assert before.get("ConfigMap", "temper-profiles")["data"] == {"my-service.toml": PROFILE}
    changed = [old for old, new in zip(before.objects, after.objects, strict=True) if old != new]
    assert {each["metadata"]["name"] for each in changed} == {"temper-profiles", "temper-agent"}
    assert _sums(before)["checksum/settings"] == _sums(after)["checksum/settings"]
    assert _sums(before)["checksum/profiles"] != _sums(after)["checksum/profiles"]


def test_an_edited_setting_rolls_the_agents(helm):
    before = _sums(helm.render())
    after = _sums(helm.render("--set", "agent.settings.plan.reserve_cores=2"))

    assert before["checksum/settings"] != after["checksum/settings"]
    assert before["checksum/profiles"] == after["checksum/profiles"]


@pytest.mark.parametrize(
    "selector", [{"temper-canary": "true"}, {"pool": "new", "zone": "b"}], ids=["one", "two"]
)
def test_every_node_has_one_agent_the_canary_or_the_main_one(helm, tmp_path, selector):
    canary = {"enabled": True, "nodeSelector": selector}
    more = [{"key": "edge", "operator": "DoesNotExist"}]
    values = {"agent": {"canary": canary, "nodeExpressions": more}}
    rendered = helm.render(*values_file(tmp_path, values))
    main, other = _spec(rendered), _spec(rendered, "temper-agent-canary")

    for choice in itertools.product((None, "true", "new", "b", "else"), repeat=len(selector)):
        labels = {key: said for key, said in zip(selector, choice, strict=True) if said}
        labels["kubernetes.io/os"] = "linux"
        is_canary = selector.items() <= labels.items()
        assert _fits(other, labels) is is_canary, labels
        assert _fits(main, labels) is not is_canary, labels
        assert not _fits(main, {**labels, "edge": ""})
        assert not _fits(other, {**labels, "edge": ""})


def test_the_canary_is_of_its_own_image_and_settings_and_answers_to_the_same_service(
    helm, tmp_path
):
    canary = {
        "enabled": True,
        "image": {"tag": "9.9.9"},
        "nodeSelector": {"temper-canary": True},
        "settings": {"plan": {"reserve_cores": 3}},
    }
    own = {"plan": {"headroom_cores": 2, "reserve_cores": 2}}
    values = {"image": {"tag": "1.0.0"}, "agent": {"canary": canary, "settings": own}}
    rendered = helm.render(*values_file(tmp_path, values))
    main, other = _spec(rendered), _spec(rendered, "temper-agent-canary")

    assert main["containers"][0]["image"].endswith(":1.0.0")
    assert other["containers"][0]["image"].endswith(":9.9.9")
    assert other["nodeSelector"]["temper-canary"] == "true"
    plans = [
        tomllib.loads(rendered.settings(f"temper-agent{end}"))["plan"] for end in ("", "-canary")
    ]
    assert plans == [own["plan"], {"headroom_cores": 2, "reserve_cores": 3}]
    selected = rendered.get("Service", "temper-agent")["spec"]["selector"].items()
    for name in ("temper-agent", "temper-agent-canary"):
        assert (
            selected
            <= rendered.get("DaemonSet", name)["spec"]["template"]["metadata"]["labels"].items()
        )


def test_without_a_canary_the_main_one_asks_nothing_more(helm):
    rendered = helm.render()

    assert "affinity" not in _spec(rendered)
    assert not rendered.has("DaemonSet", "temper-agent-canary")


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


class _Agent(BaseHTTPRequestHandler):
    def do_GET(self):
        status = self.server.status if self.path == "/readyz" else 404
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b'{"error": "safe mode: requested"}' if status != 200 else b"{}")

    def log_message(self, *_):
        pass


@pytest.fixture
def agent():
    """A server that answers like an agent, of whatever readiness the test gives it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Agent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "ends", "says"),
    [(200, 0, "127.0.0.1 is ready"), (503, 1, '127.0.0.1 is not ready: {"error": "safe mode')],
)
def test_the_release_test_asks_the_agents_whether_they_are_ready(helm, agent, status, ends, says):
    pod = helm.render().get("Pod", "temper-test-ready")["spec"]["containers"][0]
    agent.status = status

    done = _asked(pod, "127.0.0.1", agent.server_port)

    assert (done.returncode, done.stdout.startswith(says)) == (ends, True), done


def test_the_release_test_fails_where_no_agent_is(helm):
    pod = helm.render().get("Pod", "temper-test-ready")["spec"]["containers"][0]

    done = _asked(pod, "temper-agent.invalid", 9100)

    assert done.returncode == 1
    assert "temper-agent.invalid: no agent is there" in done.stdout
    assert pod["args"] == ["temper-agent.temper.svc", "9100"]


def _asked(pod, host, port):
    """Run the pod's own command with this interpreter in place of the image's."""
    _, *command = pod["command"]
    return subprocess.run(
        [sys.executable, *command, host, str(port)], capture_output=True, text=True, check=False
    )


def _spec(rendered, name="temper-agent"):
    return rendered.get("DaemonSet", name)["spec"]["template"]["spec"]


def _sums(rendered):
    return rendered.get("DaemonSet", "temper-agent")["spec"]["template"]["metadata"]["annotations"]


def _fits(spec, labels):
    """Whether a node of these labels gets such a pod, as the scheduler judges."""
    if not spec["nodeSelector"].items() <= labels.items():
        return False
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = required["nodeSelectorTerms"]
    return any(all(_holds(each, labels) for each in term["matchExpressions"]) for term in terms)


def _holds(expression, labels):
    value = labels.get(expression["key"])
    return {
        "In": lambda: value in expression["values"],
        "NotIn": lambda: value not in expression["values"],
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
    }[expression["operator"]]()
