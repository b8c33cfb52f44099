"""Where the API server is found, and in whose name it is asked."""

import base64
import os
from pathlib import Path

import pytest
import yaml

from temper_core import InputError
from temper_kube.access import in_cluster
from temper_kube.failures import UnreachableError
from temper_kube.kubeconfig import find_access, read_kubeconfig


def kubeconfig(path, cluster=None, user=None):
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster or {"server": "https://api:6443"}}],
                "users": [{"name": "u", "user": user or {}}],
            }
        )
    )
    return str(path)


def test_in_a_pod_the_service_account_is_used(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}

    access = in_cluster(environment, tmp_path)

    assert access.name == "[fd00::1]:6443"
    assert access.headers() == {"Authorization": "Bearer secret"}
    assert access.credentials.ca_file == str(tmp_path / "ca.crt")
    assert access.namespace == "default"


@pytest.mark.parametrize("port", ["tcp://10.0.0.1:443", "²", "0", "99999", "9" * 5000, "-1"])
def test_a_port_of_the_environment_that_is_none_is_that_of_https(tmp_path, port):
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": port}

    assert in_cluster(environment, tmp_path).port == 443


def test_a_token_file_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "token")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}

    assert in_cluster(environment, tmp_path).headers() == {"Authorization": "Bearer "}


def test_a_kubeconfig_names_server_and_user(tmp_path):
    cluster = {
        "server": "https://api.example/k8s/clusters/c1",
        "certificate-authority-data": base64.b64encode(b"the authority").decode(),
        "tls-server-name": "kubernetes",
    }

    access = read_kubeconfig(kubeconfig(tmp_path / "c", cluster, {"token": "secret"}))

    assert (access.host, access.port, access.prefix) == ("api.example", 443, "/k8s/clusters/c1")
    assert access.credentials.ca_data == "the authority"
    assert access.headers() == {"Authorization": "Bearer secret"}
    assert "secret" not in repr(access)


def test_files_are_beside_the_kubeconfig_that_names_them(tmp_path):
    (tmp_path / "token").write_text("from a file")

    access = read_kubeconfig(kubeconfig(tmp_path / "c", user={"tokenFile": "token"}))

    assert access.headers() == {"Authorization": "Bearer from a file"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has no keys"),
        ("{clusters: [}", "cannot be read"),
        ("current-context: gone\ncontexts: []\n", "there is no context 'gone'"),
    ],
)
def test_a_kubeconfig_that_makes_no_sense_is_refused_by_its_name(tmp_path, text, why):
    path = tmp_path / "odd"
    path.write_text(text)

    with pytest.raises(InputError, match=why) as caught:
        read_kubeconfig(str(path))

    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "user", "why"),
    [
        ({"server": "api:6443"}, {}, "is not a URL"),
        ({"server": "htps://api:6443"}, {"token": "hunter2"}, "is not a URL"),
        ({"server": "wss://api:6443"}, {"token": "hunter2"}, "is not a URL"),
        ({"server": "//api:6443"}, {"token": "hunter2"}, "is not a URL"),
        ({"server": "http://api"}, {"token": "hunter2"}, "needs a server with https"),
        ({"server": "http://10.0.0.1"}, {"tokenFile": "hunter2"}, "needs a server with https"),
        ({"server": "127.0.0.1:hunter2@x"}, {}, "is not a URL"),
        ({"server": "https://me:hunter2"}, {}, "is not a URL"),
        ({"server": "https://me:hunter2@[x"}, {}, "is not a URL"),
        ({"server": "https://api", "certificate-authority-data": "%"}, {}, "cannot be used"),
        (None, {"exec": {"command": "aws"}}, "needs a credential program"),
    ],
)
def test_what_an_agent_does_not_take_is_refused(tmp_path, cluster, user, why):
    with pytest.raises(InputError, match=why) as caught:
        read_kubeconfig(kubeconfig(tmp_path / "odd", cluster, user))

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8001", "[::1]:8001"])
def test_a_token_may_go_to_this_machine_without_tls(tmp_path, host):
    cluster, user = {"server": f"http://{host}"}, {"token": "secret"}

    access = read_kubeconfig(kubeconfig(tmp_path / "c", cluster, user))

    assert (access.is_tls, access.headers()) == (False, {"Authorization": "Bearer secret"})


def test_a_program_issues_no_token_for_a_server_without_tls(tmp_path):
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/usr/bin/false"}
    path = kubeconfig(tmp_path / "c", {"server": "http://api"}, {"exec": program})

    with pytest.raises(InputError, match="needs a server with https"):
        find_access(path)


def test_a_server_may_be_asked_without_tls_and_without_a_token(tmp_path):
    access = read_kubeconfig(kubeconfig(tmp_path / "c", {"server": "HTTP://api"}))

    assert (access.name, access.is_tls) == ("api:80", False)


def test_a_few_aliases_that_stand_for_millions_of_names_are_refused(tmp_path):
    path = tmp_path / "bomb"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    path.write_text("\n".join([*lines, "clusters: [{name: *a8, cluster: {}}]"]))

    with pytest.raises(InputError, match="has aliases"):
        read_kubeconfig(str(path))


def test_a_pipe_and_a_device_are_no_kubeconfigs(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(InputError, match="is not a regular file"):
            read_kubeconfig(path)


def test_the_pipe_that_a_shell_makes_of_a_command_is_read(tmp_path):
    reading, writing = os.pipe()
    text = Path(kubeconfig(tmp_path / "plain", {"server": "https://api:6443"}, {})).read_bytes()
    with os.fdopen(writing, "wb") as file:
        file.write(text)

    assert read_kubeconfig(f"/dev/fd/{reading}").host == "api"
    os.close(reading)


def test_an_authority_that_is_missing_is_a_server_that_is_away(tmp_path):
    access = in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)

    with pytest.raises(UnreachableError, match=r"ca\.crt"):
        access.tls()
