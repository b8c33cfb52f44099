"""An API server of two nodes that a test can change, and a client of a fleet server of it."""

import time

import pytest
from starlette.testclient import TestClient

from temper_core import __version__
from temper_kube.access import Access
from temper_plugin_dashboard.fleet.application import FleetServer
from temper_plugin_dashboard.fleet.asking import AgentDoor
from temper_plugin_dashboard.fleet.sessions import Sessions, TokenFile
from tests.kube_client.made_server import MadeServer, agent, listed, node

TOKEN = "0123456789abcdef"
PODS, NODES = "/api/v1/namespaces/temper/pods", "/api/v1/nodes"
OBSERVED = {
    "schema_version": 1,
    "at": "2026-11-28T04:18:22.408Z",
    "mode": "enforcing",
    "machine": {"cpus": 8},
    "violations": [{}],
    "pods": [
        {"namespace": "shop", "pod": "web", "tier": "high", "cpu_used": 1.5},
        {"namespace": "shop", "pod": "batch", "tier": "background", "cpu_used": 2.25},
    ],
}
OWN = {"server": f"temper/{__version__}"}


def proxied(name, path="observe"):
    return f"{PODS}/temper-agent-{name}:9100/proxy/{path}"


@pytest.fixture
def made():
    """An API server with the nodes n1 and n2, and an agent on each."""
    server = MadeServer()
    server.answers[PODS] = listed(agent("n1"), agent("n2"))
    server.answers[NODES] = listed(node("n1"), node("n2"))
    for name in ("n1", "n2"):
        server.answers[proxied(name)] = (200, OBSERVED, OWN)
    yield server
    server.close()


@pytest.fixture
def client(made, tmp_path):
    """A client of a server whose rounds follow each other."""
    with TestClient(fleet_server(made, tmp_path).application()) as client:
        yield client


def fleet_server(made, tmp_path):
    """Return that server."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    host, _, port = made.url.removeprefix("http://").partition(":")
    door = AgentDoor(Access(host, int(port), is_tls=False))
    return FleetServer(door, Sessions(TokenFile(token)), "temper", every_s=0.01)


def log_in(client, **headers):
    """Begin a session as the page does. Return the answer."""
    answer = client.post("/login", json={"token": TOKEN}, headers=headers)
    client.headers["temper-session"] = answer.json()["key"]
    return answer


@pytest.fixture
def entered(client):
    assert log_in(client).status_code == 200
    return client


def nodes_of(client):
    return {each["node"]: each for each in client.get("/fleet/nodes").json()["nodes"]}


def until_node(client, name, is_so):
    for _ in range(500):
        found = nodes_of(client).get(name)
        if found and is_so(found):
            return found
    raise AssertionError(found)


def until(is_so):
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError


def another_round(client):
    """Wait for a round that begins after this one."""
    seen = client.get("/fleet/nodes").json()["at"]
    later = {seen}
    for _ in range(2000):
        later.add(client.get("/fleet/nodes").json()["at"])
        if len(later) > 2:
            return
    raise AssertionError(later)
