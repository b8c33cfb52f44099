"""Credentials that a program issues: kept while they hold, and asked for again."""

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve

from temper_core import InputError, MachineError
from temper_kube.access import Access, Credentials
from temper_kube.connection import Connection
from temper_kube.credential_programs import Command, CredentialProgram, read_program
from temper_kube.failures import RefusalError
from tests.kube_client.made_server import MadeServer, listed

EXEC = "client.authentication.k8s.io/v1"
COUNTING = """\
import json, os, pathlib, sys
runs = pathlib.Path(sys.argv[0] + ".runs")
number = len(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text("x" * number)
status = {"token": f"token-{number}", **json.loads(os.environ.get("STATUS", "{}"))}
print(json.dumps({"status": status}))
"""


@pytest.fixture
def script(tmp_path):
    """A program that issues another token each time."""
    path = tmp_path / "issue"
    path.write_text(f"#!{sys.executable}\n{COUNTING}")
    path.chmod(0o755)
    return path


def program(script, clock=None, **status):
    environment = {**os.environ, "STATUS": json.dumps(status)}
    command = Command((str(script),), environment)
    return CredentialProgram(command, clock) if clock else CredentialProgram(command)


def test_what_a_program_issued_is_kept(script):
    asked = program(script)

    assert [asked.credentials().token for _ in range(3)] == ["token-1"] * 3


def test_what_has_expired_is_issued_again(script):
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    asked = program(script, lambda: now, expirationTimestamp="2026-11-22T12:15:00Z")
    first = asked.credentials().token
    now += timedelta(minutes=14)
    still = asked.credentials().token
    now += timedelta(minutes=1)

    assert (first, still, asked.credentials().token) == ("token-1", "token-1", "token-2")


def test_what_the_server_refuses_is_issued_again(script):
    server = MadeServer()
    server.answers["/api/v1/nodes"] = (401, {"kind": "Status", "message": "Unauthorized"})
    access = Access("127.0.0.1", int(server.url.rpartition(":")[2]), is_tls=False)
    access = evolve(access, credentials=Credentials(program=program(script)))
    try:
        with Connection(access) as connection:
            with pytest.raises(RefusalError, match="401"):
                connection.ask("GET", "/api/v1/nodes")
            server.answers["/api/v1/nodes"] = listed()
            connection.ask("GET", "/api/v1/nodes")
            connection.ask("GET", "/api/v1/nodes")
    finally:
        server.close()

    shown = [each["Authorization"] for each in server.headers]
    assert shown == ["Bearer token-1", "Bearer token-2", "Bearer token-2"]


@pytest.mark.parametrize("status", [{"expirationTimestamp": "soon"}, {"token": "", "x": 1}])
def test_what_makes_no_sense_is_no_credential(script, status):
    with pytest.raises(MachineError, match="printed n"):
        program(script, **status).credentials()


def test_a_token_is_in_no_representation(script):
    issued = program(script).credentials()

    assert "token-1" not in repr(issued)


def test_a_program_is_told_of_the_cluster_where_the_kubeconfig_says_so(tmp_path):
    entry = {"apiVersion": EXEC, "command": "/bin/sh", "provideClusterInfo": True}
    told = tmp_path / "told"
    issue = """; echo '{"status": {"token": "x"}}'"""
    entry["args"] = ["-c", f'echo "$KUBERNETES_EXEC_INFO" > {told}{issue}']

    read_program(entry, {"server": "https://api", "proxy-url": "no"}).credentials()

    said = json.loads(told.read_text())
    assert (said["kind"], said["apiVersion"]) == ("ExecCredential", EXEC)
    assert said["spec"]["cluster"] == {"server": "https://api", "certificate-authority-data": ""}


def test_an_unknown_version_is_refused():
    with pytest.raises(InputError, match="v1alpha1"):
        read_program({"apiVersion": f"{EXEC}alpha1", "command": "x"}, {})
