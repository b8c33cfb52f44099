"""Where the API server is found, and in whose name it is asked."""

import base64

import pytest
import yaml

from temper_core import InputError, MachineError
from temper_plugin_kubernetes.access import find_access, from_kubeconfig, in_cluster
from temper_plugin_kubernetes.backoff import Backoff
from temper_plugin_kubernetes.failures import AwayError


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


def test_outside_of_a_cluster_it_is_said_what_is_missing():
    with pytest.raises(MachineError, match="KUBERNETES_SERVICE_HOST is not set"):
        find_access("", {})


def test_a_kubeconfig_names_server_and_user(tmp_path):
    cluster = {
        "server": "https://api.example/k8s/clusters/c1",
        "certificate-authority-data": base64.b64encode(b"the authority").decode(),
        "tls-server-name": "kubernetes",
    }

    access = from_kubeconfig(kubeconfig(tmp_path / "c", cluster, {"token": "secret"}))

    assert (access.host, access.port, access.prefix) == ("api.example", 443, "/k8s/clusters/c1")
    assert access.credentials.ca_data == "the authority"
    assert access.headers() == {"Authorization": "Bearer secret"}
    assert "secret" not in repr(access)


def test_files_are_beside_the_kubeconfig_that_names_them(tmp_path):
    (tmp_path / "token").write_text("from a file")

    access = from_kubeconfig(kubeconfig(tmp_path / "c", user={"tokenFile": "token"}))

    assert access.headers() == {"Authorization": "Bearer from a file"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "TypeError"),
        ("{clusters: [}", "cannot be read"),
        ("current-context: gone\ncontexts: []\n", "KeyError"),
    ],
)
def test_a_kubeconfig_that_makes_no_sense_is_refused_by_its_name(tmp_path, text, why):
    path = tmp_path / "odd"
    path.write_text(text)

    with pytest.raises(InputError, match=why) as caught:
        from_kubeconfig(str(path))

    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "user", "why"),
    [
        ({"server": "api:6443"}, {}, "is no URL"),
        ({"server": "https://api", "certificate-authority-data": "%"}, {}, "Error"),
        (None, {"exec": {"command": "aws"}}, "from another program"),
    ],
)
def test_what_is_not_supported_is_refused(tmp_path, cluster, user, why):
    with pytest.raises(InputError, match=why):
        from_kubeconfig(kubeconfig(tmp_path / "odd", cluster, user))


def test_an_authority_that_is_missing_is_a_server_that_is_away(tmp_path):
    access = in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)

    with pytest.raises(AwayError, match=r"ca\.crt"):
        access.tls()


@pytest.mark.parametrize(
    ("chance", "waits"), [(0.0, [0.25, 0.5, 1, 2, 2]), (1.0, [0.5, 1, 2, 4, 4])]
)
def test_waits_double_to_a_bound_and_half_of_each_is_chance(chance, waits):
    backoff = Backoff(0.5, 4.0, chance=lambda: chance)

    assert [backoff.failed() for _ in range(5)] == waits
    backoff.forget()
    assert backoff.failed() == waits[0]


def test_what_the_server_asks_for_is_waited_on_top():
    backoff = Backoff(0.5, 4.0, chance=lambda: 1.0)

    assert backoff.failed(3.0) == 3.5
    assert backoff.failed(3600.0) == 5.0
