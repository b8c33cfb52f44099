"""``temper placement score`` by the kubeconfigs that kubectl takes."""

import json
import os
import subprocess
import sys

import pytest
import yaml

from tests.density.placement.made import node_object, pod_object
from tests.density.placement.yard import TEMPER
from tests.kube_client.made_server import MadeServer, listed

PROGRAM = """\
import json, os
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert asked["kind"] == "ExecCredential", asked
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential",
                  "status": {"token": "of-the-program"}}))
"""


@pytest.fixture
def server():
    server = MadeServer()
    server.answers["/api/v1/nodes"] = listed(node_object("one"))
    server.answers["/api/v1/pods"] = listed()
    yield server
    server.close()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "tell"
    path.write_text(f"#!{sys.executable}\n{PROGRAM}")
    path.chmod(0o755)
    return path


def kubeconfig(path, *, server="", user=None, context=True):
    """Write a kubeconfig that holds a cluster, a user or a context, or all of them."""
    document = {"apiVersion": "v1", "kind": "Config"}
    if server:
        document["clusters"] = [{"name": "c", "cluster": {"server": server}}]
    if user is not None:
        document["users"] = [{"name": "u", "user": user}]
    if context:
        document["contexts"] = [{"name": "it", "context": {"cluster": "c", "user": "u"}}]
        document["current-context"] = "it"
    path.write_text(yaml.safe_dump(document))
    return path


def score(*options, **environment):
    given = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    return subprocess.run(
        [TEMPER, "placement", "score", "-", "--output", "json", *map(str, options)],
        input=json.dumps(pod_object("db", cpu="1")),
        capture_output=True,
        text=True,
        timeout=60,
        env={**given, **environment},
        check=False,
    )


def nodes_in(done):
    assert done.returncode in (0, 1), done.stderr
    return [each["node"] for each in json.loads(done.stdout)["nodes"]]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_user_whose_token_a_program_prints_is_let_in(server, program, tmp_path, version):
    asked = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": str(program),
        "interactiveMode": "Never",
    }
    path = kubeconfig(tmp_path / "config", server=server.url, user={"exec": asked})

    assert nodes_in(score("--kubeconfig", path)) == ["one"]
    assert {each["Authorization"] for each in server.headers} == {"Bearer of-the-program"}


def test_the_files_of_kubeconfig_are_joined(server, tmp_path):
    first = kubeconfig(tmp_path / "first", server=server.url, context=False)
    second = kubeconfig(tmp_path / "second", user={"token": "of-the-second"})

    done = score(KUBECONFIG=f"{first}{os.pathsep}{second}")

    assert nodes_in(done) == ["one"]
    assert {each["Authorization"] for each in server.headers} == {"Bearer of-the-second"}
