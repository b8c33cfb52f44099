"""Ways to the API server: users, programs that tell who they are, kubectl itself."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.control_plane.cluster import wait_until
from tests.kube_client.made_server import agent, listed, node
from tests.kubernetes.tools.conftest import OUTSIDE, PLUGIN, TEMPER, here, said


def token_of(cluster, user):
    lines = (cluster.directory / "tokens.csv").read_text().splitlines()
    return next(line.split(",")[0] for line in lines if line.split(",")[1] == user)


@pytest.mark.parametrize(
    "asked", [("status",), ("doctor",), ("restore", "--all-nodes"), ("restore", "n1")]
)
def test_who_may_nothing_gets_one_line_that_names_the_right(k8s, cluster, asked):
    done = k8s(*asked, kubeconfig=cluster.directory / "kubeconfig.nobody")

    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr == (
        "temper: forbidden: nobody lacks the right to list nodes in the whole cluster\n"
    )


def test_a_token_that_is_no_more_is_told(k8s, kubeconfig_of):
    done = k8s("status", kubeconfig=kubeconfig_of({"token": "expired"}))

    assert done.returncode == 3
    assert "does not accept these credentials (401)" in done.stderr


def test_no_server_is_told_in_one_line(kubeconfig_of):
    path = kubeconfig_of({"token": "x"}, server="https://127.0.0.1:9")

    done = said(TEMPER, "k8s", "status", kubeconfig=path)

    assert done.returncode == 3
    assert done.stderr.startswith("temper: no API server: 127.0.0.1:9 does not answer: ")
    assert done.stderr.count("\n") == 1


def test_without_any_kubeconfig_it_says_how_to_name_one(tmp_path):
    done = here("k8s", "status", HOME=str(tmp_path))

    assert done.returncode == 3
    assert "no API server is known: " in done.stderr
    assert "name a kubeconfig with --kubeconfig" in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "cannot be read as a kubeconfig"),
        ("- 1", "is not a kubeconfig"),
        ("clusters: [{nome: a}]", "clusters: an entry needs 'name' and 'cluster'"),
        ("current-context: a", "there is no context 'a'; there are: none"),
        ("kind: Config", "no current-context; `kubectl config use-context NAME` sets one"),
    ],
)
def test_a_kubeconfig_with_a_mistake_is_the_users_error(tmp_path, text, told):
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    done = here("k8s", "status", "--kubeconfig", path)

    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.startswith(f"temper: {path}: ")


def test_a_file_that_is_not_there_is_the_users_error(tmp_path):
    done = here("k8s", "status", "--kubeconfig", tmp_path / "none")

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No such file or directory" in done.stderr


PROGRAM = """\
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert asked["kind"] == "ExecCredential", asked
assert os.environ["GREETING"] == "hello", "no env"
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential",
                  "status": {"token": sys.argv[1]}}))
"""


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_user_who_comes_from_a_program_is_let_in(k8s, cluster, kubeconfig_of, tmp_path, version):
    program = tmp_path / "tell"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    user = {
        "exec": {
            "apiVersion": f"client.authentication.k8s.io/{version}",
            "command": str(program),
            "args": [token_of(cluster, "admin")],
            "env": [{"name": "GREETING", "value": "hello"}],
            "interactiveMode": "IfAvailable",
            "provideClusterInfo": True,
        }
    }

    done = k8s("status", kubeconfig=kubeconfig_of(user))

    assert (done.returncode, done.stdout, done.stderr) == (0, "no nodes\n", "")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 3", "ended with code 3"),
        ("echo nothing", "printed no ExecCredential with a status"),
        (None, "cannot be run"),
    ],
)
def test_a_program_that_fails_is_told_in_one_line(k8s, kubeconfig_of, tmp_path, script, told):
    program = tmp_path / "tell"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    asked = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}

    done = k8s("status", kubeconfig=kubeconfig_of({"exec": asked}))

    assert done.returncode == 3
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_several_files_are_one_and_the_first_to_name_something_wins(
    cluster, kubeconfig_of, tmp_path
):
    good = cluster.directory / "kubeconfig"
    other = kubeconfig_of({"token": "expired"}, "other")
    files = os.pathsep.join(map(str, (good, tmp_path / "missing", other)))

    first = here("k8s", "status", kubeconfig=files)
    second = here("k8s", "status", "--context", "it", kubeconfig=files)

    assert first.returncode == 0
    assert (second.returncode, "401" in second.stderr) == (3, True)


def test_kubectl_finds_the_plugin_and_it_is_the_same(cluster, k8s):
    path = f"{Path(PLUGIN).parent}:{cluster.environment['PATH']}"
    kubeconfig = cluster.directory / "kubeconfig"

    asked = said("kubectl", "temper", "status", "-o", "json", kubeconfig=kubeconfig, PATH=path)
    help_text = said("kubectl", "temper", "--help", kubeconfig=kubeconfig, PATH=path)
    wrong = said("kubectl", "temper", "restore", kubeconfig=kubeconfig, PATH=path)

    assert json.loads(asked.stdout) == json.loads(k8s("status", "-o", "json").stdout)
    assert help_text.stdout.startswith("Usage: kubectl temper ")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "kubectl temper: name the nodes to restore, or give --all-nodes\n",
    )


def test_a_reader_that_goes_away_is_no_error_and_cuts_nothing_short(made, kubeconfig_to):
    nodes = [node(f"n{number:04}", agent_status="enforcing") for number in range(300)]
    made.answers["/api/v1/nodes"] = listed(*nodes)
    made.answers["/api/v1/namespaces/temper/pods"] = listed()

    def slowly(_query):
        threading.Event().wait(0.01)
        return {}

    for each in nodes:
        made.answers[f"/api/v1/nodes/{each['metadata']['name']}"] = slowly
    command = [PLUGIN, "restore", "--all-nodes", "--kubeconfig", str(kubeconfig_to(made.url))]

    with subprocess.Popen(
        command, env=OUTSIDE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asked:
        asked.stdout.readline()
        asked.stdout.close()
        told = asked.stderr.read()

    assert (told, len([each for each in made.asked if each[0] == "PATCH"])) == ("", 300)
    assert asked.returncode == 1


@pytest.mark.parametrize("program", [[PLUGIN], [TEMPER, "k8s"]], ids=["kubectl", "temper"])
def test_an_interruption_ends_the_wait_without_a_trace(made, kubeconfig_to, program):
    made.answers["/api/v1/nodes"] = listed(node("one", agent_status="enforcing"))
    made.answers["/api/v1/namespaces/temper/pods"] = listed(agent("one"))
    made.answers["/api/v1/nodes/one"] = {}
    command = [*program, "restore", "one", "--kubeconfig", str(kubeconfig_to(made.url))]

    with subprocess.Popen(command, env=OUTSIDE, stderr=subprocess.PIPE, text=True) as asked:
        wait_until(lambda: any("watch" in each[2] for each in made.asked), "the wait", 60)
        asked.send_signal(signal.SIGINT)
        told = asked.stderr.read()

    assert (asked.returncode, "Traceback" in told) == (130, False)


def test_the_help_of_temper_imports_none_of_it():
    code = "import sys, temper_plugin_kubernetes as p; p.temper_commands(); print(*sys.modules)"

    done = said(sys.executable, "-c", code, **OUTSIDE)

    assert not {"click", "lightkube", "yaml", "http.client"} & set(done.stdout.split())
    assert "temper_plugin_kubernetes" in done.stdout.split()
