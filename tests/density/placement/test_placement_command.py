"""``temper placement`` as people and the chart run it."""

import json
import os
import re
import signal
import subprocess
import time

import httpx2
import pytest

from temper_core import TemperError, Tier
from temper_plugin_density.cluster_access import find_access
from tests.control_plane.cluster import pod, unique, wait_until
from tests.density.placement.made import PRIORITIES, pod_object, told
from tests.density.placement.yard import TEMPER, free_port

NOWHERE = {"KUBECONFIG": "/nonexistent", "HOME": "/nonexistent"}


def placement(*arguments, input_text=None, **environment):
    return subprocess.run(
        [TEMPER, "placement", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=input_text,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture
def asked(cluster):
    """Run ``temper placement score`` as the cluster's administrator."""

    def ask(*arguments, **given):
        return placement(
            "score", *arguments, "--kubeconfig", cluster.directory / "kubeconfig", **given
        )

    return ask


@pytest.fixture
def enforcing(cluster, node):
    cluster.annotate(node, **told(time.time(), fence_budget_cores="31"))
    for name, value in PRIORITIES.values():
        cluster.make({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    return node


@pytest.mark.parametrize("address", ["", "8888", ":8888", "0.0.0.0:", "0.0.0.0:65536", "::1:80"])
def test_an_address_that_is_none_is_refused_in_one_line(address):
    ended = placement("serve", "--listen", address, **NOWHERE)

    assert ended.returncode == 2
    assert ended.stderr.startswith("temper: --listen: must be an address and a port")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["", "x: 1", "[", "[]", "current-context: a\nclusters: 3"])
def test_what_is_no_kubeconfig_is_told_in_one_line(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    with pytest.raises(TemperError) as raised:
        find_access(path)

    assert raised.value.exit_code in (2, 3)
    assert len(str(raised.value).splitlines()) == 1


def test_without_an_api_server_to_be_found_nothing_is_served():
    nowhere = {**NOWHERE, "KUBECONFIG": ""}

    ended = placement("serve", "--listen", f"127.0.0.1:{free_port()}", **nowhere)

    assert ended.returncode == 3
    assert "no API server is known" in ended.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must have exactly one Pod, and has 0"),
        ("a: [", "is neither JSON nor YAML"),
        ("kind: Deployment", "must have exactly one Pod, and has 0"),
        ("kind: Pod\n---\nkind: Pod", "must have exactly one Pod, and has 2"),
    ],
)
def test_a_file_that_holds_no_pod_is_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "pod.yaml"
    path.write_text(text)

    ended = placement("score", path, **NOWHERE)

    assert ended.returncode == 2
    assert ended.stderr.startswith(f"temper: {path}: {said}")
    assert ended.stderr.count("\n") == 1


def test_a_file_without_end_is_refused_in_one_line(tmp_path):
    path = tmp_path / "pod.json"
    with path.open("wb") as file:
        file.truncate(1 << 32)

    ended = placement("score", path, **NOWHERE)

    assert (ended.returncode, ended.stderr) == (
        2,
        f"temper: {path}: is larger than {64 << 20} bytes\n",
    )


def test_a_file_that_is_not_there_is_named():
    ended = placement("score", "absent.yaml", **NOWHERE)

    assert (ended.returncode, ended.stderr) == (
        2,
        "temper: absent.yaml: No such file or directory\n",
    )


def test_a_manifest_is_scored_by_the_priority_that_its_class_has(asked, enforcing, tmp_path):
    manifest = pod_object("db", Tier.CRITICAL, "3")
    del manifest["spec"]["priority"]
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(manifest))

    ended = asked(path, "--output", "json")

    said = json.loads(ended.stdout)
    (found,) = [each for each in said["nodes"] if each["node"] == enforcing]
    assert (ended.returncode, said["tier"], said["cpu_millis"]) == (0, "critical", 3000)
    assert (found["inputs"]["fenced_after"], found["score"]) == (2, 9)


def test_a_manifest_may_come_by_standard_input(asked, enforcing):
    ended = asked("-", input_text=json.dumps(pod_object("db", Tier.HIGH, "1")))

    assert ended.returncode == 0
    assert re.search(
        rf"^{enforcing} +10 +96.8 +1 of 31 fenceable cores", ended.stdout, re.MULTILINE
    )


def test_a_class_that_is_not_there_is_named(asked):
    manifest = pod_object("db")
    manifest["spec"]["priorityClassName"] = "nobodys"

    ended = asked("-", input_text=json.dumps(manifest))

    assert ended.returncode == 2
    assert ended.stderr.startswith("temper: priority class nobodys: ")


def test_a_pod_of_the_cluster_is_scored_as_if_another_came(asked, cluster, enforcing):
    name = unique("db")
    cluster.make(pod(name, enforcing, "shop", cpu="2", priority_class="temper-critical"))

    ended = asked(f"shop/{name}", "--output", "json")

    said = json.loads(ended.stdout)
    (found,) = [each for each in said["nodes"] if each["node"] == enforcing]
    assert said["bound_to"] == enforcing
    assert said["source"] == "reckoned now, as if another such pod came"
    assert found["inputs"]["fenced_asked"] == 1


def test_a_pod_that_is_not_there_is_named(asked):
    ended = asked("shop/nobody")

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == 'temper: pod shop/nobody: pods "nobody" not found\n'


def test_where_no_node_would_have_a_point_that_is_a_finding(asked, cluster, enforcing):
    cluster.annotate(enforcing, agent_mode="safe_mode")

    ended = asked("-", input_text=json.dumps(pod_object("db", Tier.CRITICAL, "1")))

    assert ended.returncode == 1
    assert "the agent's mode is safe_mode" in ended.stdout


def test_what_is_annotated_does_not_steer_the_terminal(asked, cluster, enforcing):
    cluster.annotate(enforcing, agent_mode="\x1b[31mred\nline")

    ended = asked("-", input_text=json.dumps(pod_object("db", Tier.CRITICAL, "1")))

    assert "\x1b" not in ended.stdout
    assert "red" in ended.stdout


def test_an_account_without_rights_is_told_so(cluster):
    kubeconfig = cluster.directory / "kubeconfig.nobody"

    ended = placement(
        "score", "-", "--kubeconfig", kubeconfig, input_text=json.dumps(pod_object("db"))
    )

    assert ended.returncode == 3
    assert ended.stderr.startswith("temper: nodes: ")
    assert "forbidden" in ended.stderr


def test_the_thresholds_of_the_agents_settings_are_taken(cluster, tmp_path):
    settings = tmp_path / "agent.toml"
    settings.write_text("[priority_mapping]\ncritical = 500\nhigh = 400\n")
    manifest = pod_object("db", cpu="1")
    manifest["spec"]["priority"] = 600
    options = ("--settings", settings, "--kubeconfig", cluster.directory / "kubeconfig")

    ended = placement("score", "-", *options, input_text=json.dumps(manifest))

    assert "tier critical" in ended.stdout
    assert "priority 600 >= critical threshold 500" in ended.stdout


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_server_logs_where_it_listens_and_ends_when_it_is_told(cluster, ending):
    kubeconfig = cluster.directory / "kubeconfig"
    port = free_port()
    arguments = ["serve", "--listen", f"127.0.0.1:{port}", "--kubeconfig", str(kubeconfig)]
    server = subprocess.Popen([TEMPER, "placement", *arguments], stderr=subprocess.PIPE, text=True)
    try:
        first = json.loads(server.stderr.readline())
        wait_until(lambda: _answers(port, "/readyz"), "readiness", 30)
        taken = placement(*arguments)
        server.send_signal(ending)
        _, rest = server.communicate(timeout=20)
    finally:
        server.kill()

    assert (first["event"], first["port"]) == ("placement_served", port)
    assert (taken.returncode, "cannot listen on" in taken.stderr) == (3, True)
    assert server.returncode == 0
    assert json.loads(rest.splitlines()[-1])["event"] == "placement_ended"


def _answers(port, path):
    try:
        return httpx2.get(f"http://127.0.0.1:{port}{path}", trust_env=False).is_success
    except httpx2.TransportError:
        return False
