"""Kubeconfigs as people have them: what is odd is one line with a code, and no secret is told."""

import json
import os
import sys
from pathlib import Path

import pytest

from temper_core import MachineError
from temper_kube.kubeconfig import find_access
from tests.kube_client.made_server import listed
from tests.kubernetes.tools.conftest import here

EXEC = "client.authentication.k8s.io/v1"
SERVER = {"server": "https://127.0.0.1:9"}
PROGRAM = {"apiVersion": EXEC, "command": "true"}
ECHO = {**PROGRAM, "command": "echo"}
ODD = {
    "a server that is a number": ({"server": 5}, {}),
    "a server without a scheme": ({"server": "127.0.0.1:6443"}, {}),
    "a server with a port that is none": ({"server": "https://127.0.0.1:99999"}, {}),
    "an authority that is no base64": ({**SERVER, "certificate-authority-data": "%"}, {}),
    "an authority that is a number": ({**SERVER, "certificate-authority-data": 5}, {}),
    "a proxy": ({**SERVER, "proxy-url": "http://proxy:3128"}, {}),
    "exec that is text": (SERVER, {"exec": "aws eks get-token"}),
    "exec without a version": (SERVER, {"exec": {"command": "true"}}),
    "exec of an old version": (SERVER, {"exec": {**PROGRAM, "apiVersion": f"{EXEC}alpha1"}}),
    "exec with args that are none": (SERVER, {"exec": {**PROGRAM, "args": 5}}),
    "exec with env that is none": (SERVER, {"exec": {**PROGRAM, "env": [{"name": "A"}]}}),
    "exec with env that is a table": (SERVER, {"exec": {**PROGRAM, "env": {"A": "b"}}}),
    "another provider": (SERVER, {"auth-provider": {"name": "gcp"}}),
    "groups without a user to act as": (SERVER, {"as-groups": ["viewers"]}),
    "a user to act as that is a number": (SERVER, {"as": 5}),
    "a user to act as of two lines": (SERVER, {"as": "a\r\nImpersonate-Group: b"}),
    "groups to act as that are text": (SERVER, {"as": "a", "as-groups": "viewers"}),
    "extras to act as that are none": (SERVER, {"as": "a", "as-user-extra": ["a"]}),
    "an authority that is not there": (
        {**SERVER, "certificate-authority": "/nowhere"},
        {"exec": {**PROGRAM, "provideClusterInfo": True}},
    ),
}
UNUSABLE = {
    "a token of several lines": {"token": "secret\nsecret"},
    "a token that is no ASCII": {"token": "secr\u00e9t"},
    "a program without a name": {"exec": {"apiVersion": EXEC}},
    "a program whose name is none": {"exec": {**PROGRAM, "command": "a\0b"}},
    "a program that tells nobody": {"exec": {**ECHO, "args": ['{"status":{}}']}},
    "a program that prints a list": {"exec": {**ECHO, "args": ["[1]"]}},
    "a program that prints no JSON": {"exec": {**ECHO, "args": ["[" * 9999]}},
    "a program that tells rubbish": {
        "exec": {**ECHO, "args": ['{"status": {"token": "secret\\nx"}}']}
    },
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
def test_an_entry_that_makes_no_sense_is_the_users_error_in_one_line(kubeconfig_to, what):
    cluster, user = ODD[what]
    path = kubeconfig_to(
        cluster["server"], user, **{k: cluster[k] for k in cluster if k != "server"}
    )

    done = here("k8s", "status", "--kubeconfig", path)

    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")


@pytest.mark.parametrize("what", UNUSABLE)
def test_credentials_that_cannot_be_used_are_one_line_without_them(made, kubeconfig_to, what):
    done = here("k8s", "status", "--kubeconfig", kubeconfig_to(made.url, UNUSABLE[what]))

    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (3, 1, "")
    assert "secr" not in done.stderr
    assert made.asked == []


def test_a_token_with_a_line_end_is_used_without_it(made, kubeconfig_to):
    made.answers["/api/v1/nodes"] = made.answers["/api/v1/namespaces/temper/pods"] = listed()

    assert (
        here("k8s", "status", "--kubeconfig", kubeconfig_to(made.url, {"token": "a\n"})).returncode
        == 0
    )


def program(tmp_path, text, interpreter="/bin/sh"):
    path = tmp_path / "tell"
    path.write_text(f"#!{interpreter}\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_program_that_never_ends_is_not_waited_for_nor_are_its_children(
    kubeconfig_to, tmp_path, monkeypatch
):
    monkeypatch.setattr("temper_kube.credential_programs.EXEC_S", 0.3)
    pid = tmp_path / "pid"
    never = program(tmp_path, f"sleep 60 & echo $! > {pid}; wait")
    asked = {"apiVersion": EXEC, "command": str(never), "args": ["--secret"]}

    done = here(
        "k8s", "status", "--kubeconfig", kubeconfig_to("https://127.0.0.1:9", {"exec": asked})
    )
    is_alive = Path(f"/proc/{pid.read_text().strip()}").exists()
    os.kill(int(pid.read_text()), 9)

    assert is_alive
    assert done.returncode == 3
    assert done.stderr == f"temper: exec '{never}' did not end within 0.3 s\n"


def test_a_program_that_prints_without_end_is_ended(kubeconfig_to, tmp_path, monkeypatch):
    monkeypatch.setattr("temper_kube.credential_programs.MOST_WRITTEN_BYTES", 100_000)
    asked = {"apiVersion": EXEC, "command": str(program(tmp_path, "exec yes"))}

    done = here(
        "k8s", "status", "--kubeconfig", kubeconfig_to("https://127.0.0.1:9", {"exec": asked})
    )

    assert done.returncode == 3
    assert done.stderr.endswith("/tell' ended with code -25\n")  # SIGXFSZ


@pytest.mark.parametrize("odd", ["pipe", "/dev/zero", "large"])
@pytest.mark.parametrize(
    "key", ["certificate-authority", "client-certificate", "client-key", "exec"]
)
def test_certificates_and_keys_are_small_regular_files(kubeconfig_to, made, tmp_path, key, odd):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"-" * 1_100_000)
    (tmp_path / "empty").touch()
    cluster, user = {}, {}
    if key.startswith("client"):
        user = {"client-certificate": "empty", "client-key": "empty", key: odd}
    else:
        cluster["certificate-authority"] = odd
    if key == "exec":
        user["exec"] = {**PROGRAM, "provideClusterInfo": True}
    url = made.url.replace("http:", "https:")

    done = here("k8s", "status", "--kubeconfig", kubeconfig_to(url, user, **cluster))

    assert (done.returncode, done.stderr.count("\n")) == (2 if key == "exec" else 3, 1)
    assert "is not a regular file" in done.stderr or "is larger than" in done.stderr


def test_a_program_beside_its_kubeconfig_is_found_from_elsewhere(made, kubeconfig_to, tmp_path):
    credential = json.dumps({"status": {"token": "x"}})
    program(tmp_path, f"echo '{credential}'")
    made.answers["/api/v1/nodes"] = made.answers["/api/v1/namespaces/temper/pods"] = listed()
    asked = {"apiVersion": EXEC, "command": "./tell"}

    done = here("k8s", "status", "--kubeconfig", kubeconfig_to(made.url, {"exec": asked}))

    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_may_print_more_than_a_pipe_holds(made, kubeconfig_to, tmp_path):
    text = 'import json; print(json.dumps({"status": {"token": "x"}, "more": "y" * 300_000}))'
    long = program(tmp_path, text, sys.executable)
    made.answers["/api/v1/nodes"] = made.answers["/api/v1/namespaces/temper/pods"] = listed()
    asked = {"apiVersion": EXEC, "command": str(long)}

    done = here("k8s", "status", "--kubeconfig", kubeconfig_to(made.url, {"exec": asked}))

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("given", ["", os.pathsep, os.pathsep * 3])
def test_a_variable_that_names_no_file_is_none(given, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(MachineError, match="no API server is known"):
        find_access(environment={"KUBECONFIG": given})


def test_a_user_without_a_home_is_told_how_to_name_a_kubeconfig(monkeypatch):
    def no_home(_path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.expanduser", no_home)

    with pytest.raises(MachineError, match="name a kubeconfig with --kubeconfig"):
        find_access(environment={})


def test_a_file_of_brackets_is_no_kubeconfig(tmp_path):
    path = tmp_path / "deep"
    path.write_text("[" * 100_000)

    done = here("k8s", "status", "--kubeconfig", path)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
