"""Kubeconfigs that are replaced in place while their user runs."""

import base64
import os
from pathlib import Path
from time import time_ns
from types import SimpleNamespace

import pytest
import yaml

from temper_kube import renewal
from temper_kube.connection import Connection
from temper_kube.failures import RefusalError, UnreachableError
from temper_kube.kubeconfig import find_access, read_kubeconfig
from temper_kube.list_watch import ListWatch, Query
from temper_kube.watch_status import WatchStatus
from tests.control_plane.cluster import wait_until
from tests.kube_client.made_server import MadeServer, listed
from tests.kube_client.test_list_watch import Names

NODES = "/api/v1/nodes"
REFUSED = (401, {"kind": "Status", "message": "Unauthorized"})


def written(path, token="", *, server="https://api", current="here", cluster=None, **user):
    contexts = [
        {"name": name, "context": {"cluster": name, "user": "u"}} for name in ("here", "there")
    ]
    clusters = [
        {"name": "here", "cluster": {"server": server, **(cluster or {})}},
        {"name": "there", "cluster": {"server": "https://there"}},
    ]
    users = [{"name": "u", "user": {"token": token, **user}}]
    document = {"current-context": current, "contexts": contexts}
    path.write_text(yaml.safe_dump({**document, "clusters": clusters, "users": users}))
    settle(path)
    return str(path)


def settle(path):
    """Make *path* look as if it had been written some seconds ago."""
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns - 10**10))


def encoded(text):
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kubeconfig"


@pytest.fixture
def server():
    """A server that accepts the token ``new`` alone."""
    server = MadeServer()
    server.answers[NODES] = lambda _query: (
        listed() if server.headers[-1].get("Authorization") == "Bearer new" else REFUSED
    )
    yield server
    server.close()


@pytest.mark.parametrize("read", [find_access, read_kubeconfig])
def test_a_token_that_is_replaced_is_used_after_a_refusal(path, server, read):
    with Connection(read(written(path, "old", server=server.url))) as connection:
        with pytest.raises(RefusalError, match="401"):
            connection.ask("GET", NODES)
        written(path, "new", server=server.url)

        connection.ask("GET", NODES)

    assert [each["Authorization"] for each in server.headers] == ["Bearer old", "Bearer new"]


def test_a_watch_that_is_refused_goes_on_with_the_token_that_is_replaced(path, server):
    status = WatchStatus("nodes")
    access = read_kubeconfig(written(path, "old", server=server.url))
    watch = ListWatch(access, Query(NODES), Names(), status)
    watch.start()
    try:
        wait_until(lambda: "401" in status.reason, "the refusal")
        written(path, "new", server=server.url)
        wait_until(status.has_listed.is_set, "the list")
    finally:
        watch.close()


def test_a_connection_that_stands_is_not_left_for_a_new_file(path, server):
    with Connection(read_kubeconfig(written(path, "new", server=server.url))) as connection:
        connection.ask("GET", NODES)
        written(path, "newer", server=server.url)

        connection.ask("GET", NODES)


def test_a_server_that_is_replaced_is_asked_after_a_failed_connection(path, server):
    access = read_kubeconfig(written(path, "new", server="http://127.0.0.1:1"))
    with Connection(access) as connection:
        with pytest.raises(UnreachableError):
            connection.ask("GET", NODES)
        written(path, "new", server=server.url)

        assert connection.ask("GET", NODES) == listed()


def test_certificate_and_authority_are_taken_from_the_new_file(path):
    access = read_kubeconfig(written(path, "old"))
    own = {"client-certificate-data": encoded("cert"), "client-key-data": encoded("key")}
    written(path, cluster={"certificate-authority-data": encoded("authority")}, **own)

    credentials = access.current().credentials

    assert (credentials.token, credentials.ca_data) == ("", "authority")
    assert credentials.certificate_data == b"certkey"


def test_a_file_that_has_not_changed_is_not_read_again(path):
    access = read_kubeconfig(written(path, "old"))
    written(path, "new")
    renewed = access.current()

    assert access.current() is renewed


@pytest.mark.parametrize("text", ["", "clusters: [{", "users: []\n", None])
def test_a_file_that_cannot_be_used_keeps_the_former_credentials(path, text):
    access = read_kubeconfig(written(path, "old"))
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
        settle(path)
    meanwhile = access.current().credentials.token
    written(path, "new")

    assert (meanwhile, access.current().credentials.token) == ("old", "new")


def test_the_first_half_of_a_file_is_not_used(path):
    access = read_kubeconfig(written(path, "old"))
    written(path, "new")
    whole = path.read_text()
    path.write_text(whole[: whole.index("users:")])  # without a user

    assert access.current().credentials.token == "old"

    path.write_text(whole)
    assert access.current().credentials.token == "old"
    settle(path)
    assert access.current().credentials.token == "new"


def test_a_file_of_a_later_time_is_used_once_looks_show_no_change(path, monkeypatch):
    moments = [100.0, 100.0]
    monkeypatch.setattr(renewal, "time", SimpleNamespace(time_ns=time_ns, monotonic=moments.pop))
    access = read_kubeconfig(written(path, "old"))
    written(path, "new")
    os.utime(path, ns=(0, time_ns() + 10**12))

    assert access.current().credentials.token == "old"
    moments.append(101.9)
    assert access.current().credentials.token == "old"
    moments.append(102.0)
    assert access.current().credentials.token == "new"


def test_a_change_of_the_current_context_leads_to_no_other_cluster(path):
    access = find_access(written(path, "old"))
    written(path, "new", current="there")

    now = access.current()

    assert (now.host, now.credentials.token) == ("api", "new")


def test_one_of_several_files_is_read_again(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    written(first, "old")
    written(second, "other")
    access = find_access("", "", {"KUBECONFIG": f"{first}{os.pathsep}{second}"})
    written(first, "new")

    assert access.current().credentials.token == "new"


def test_a_program_of_a_kubeconfig_is_not_run_after_a_change_either(path):
    access = read_kubeconfig(written(path, "old"))
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/usr/bin/false"}
    written(path, exec=program)

    assert access.current().credentials.token == "old"


def test_the_pipe_of_a_shell_is_read_once(path):
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(Path(written(path, "old")).read_bytes())

    access = find_access(f"/dev/fd/{reading}")
    os.close(reading)

    assert access.current() is access
