"""Settings and profiles on their way from the values to the agent."""

import subprocess
import sys
import tomllib
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from temper_core import Address, Tier, parse_address
from temper_core.settings import Settings, load
from tests.kubernetes.chart.charts import values_file

TEMPER = Path(sys.executable).with_name("temper")
PROFILE = """
schema_version = 1
id = "my-service"
[fingerprint]
images = ["*/my-service:*"]
[[thread_groups]]
name = "rest"
treatment = "normal"
"""


def test_the_agent_reads_its_settings_where_they_are_mounted(helm, tmp_path):
    rendered = helm.render("--set", "agent.token.create=true")
    container = _spec(rendered)["containers"][0]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    path = tmp_path / "agent.toml"
    path.write_text(rendered.settings())

    found = load(path).settings

    assert container["args"][:3] == ["agent", "--settings", "/etc/temper/agent.toml"]
    assert mounts["/etc/temper/agent.toml"]["subPath"] == "agent.toml"
    assert found.server.token_file.rpartition("/")[0] in mounts
    for file in (found.safe_mode.file, found.safe_mode.state, found.server.socket):
        assert file.rpartition("/")[0] in mounts
    assert found.scheduler.steering_pin.startswith("/sys/fs/bpf/")
    assert found.pods.source == "kubernetes"
    assert found.server.listen == "0.0.0.0:9100"


def test_no_profile_reaches_a_node_before_the_roll_does(helm, tmp_path):
    rendered = helm.render(
        *values_file(tmp_path, {"agent": {"profiles": {"my-service.toml": PROFILE}}})
    )
    found = Settings().profiles.directory

    mounts = [
        each
        for each in _spec(rendered)["containers"][0]["volumeMounts"]
        if each["name"] == "profiles"
    ]

    # The kubelet brings a mounted ConfigMap up to date in running pods, but never one of its files.
    assert [(each["mountPath"], each["subPath"]) for each in mounts] == [
        (f"{found}/my-service.toml", "my-service.toml")
    ]


def test_where_pods_have_ipv6_only_the_agent_listens_there(helm):
    server = tomllib.loads(helm.render("--set", "listen=::").settings())["server"]

    assert parse_address(server["listen"], "server.listen") == Address("::", 9100)


def test_what_the_schema_cannot_judge_the_agent_refuses_in_one_line(helm, tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(helm.render("--set", "agent.settings.priority_mapping.low=5").settings())

    done = subprocess.run(
        [TEMPER, "agent", "--settings", path], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "priority_mapping: must fall from system" in done.stderr
    assert len(done.stderr.splitlines()) == 1


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


def _sums(rendered):
    return rendered.get("DaemonSet", "temper-agent")["spec"]["template"]["metadata"]["annotations"]


def _spec(rendered, name="temper-agent"):
    return rendered.get("DaemonSet", name)["spec"]["template"]["spec"]
