"""By which names requests over TCP may call the agent."""

import os

import pytest

from temper_core.server.hosts import known_hosts
from tests.core.server.conftest import start_server

FOREIGN = ["evil.example", "evil.example:9100", "127.0.0.1.evil.example", "x.svc.evil.example"]
MALFORMED = ["a b", "evil.example/", "u@evil.example", "[::1", "evil.example:x", "é.example"]


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.4.0.7:9100", "[::1]", "[fd00::7]:9100"),
        *("localhost", "LOCALHOST:8080", "app.localhost", "agent", "node-7:9100"),
        *("temper-agent.temper.svc:9100", "temper-agent.temper.svc.cluster.local."),
        *("ip-10-0-0-7.eu-west-1.compute.internal", "printer.local"),
        *("temper.example.org", "TEMPER.example.org.:443", "node-7.nodes.example.org"),
    ],
)
def test_an_address_a_private_name_and_a_given_one_are_known(host):
    hosts = known_hosts(["Temper.example.org", ".nodes.example.org"])

    assert hosts.is_known(host)


@pytest.mark.parametrize(
    "host", [*FOREIGN, *MALFORMED, "nodes.example.org.evil.example", "evilnodes.example.org"]
)
def test_a_name_that_a_page_can_have_is_not_known(host):
    assert not known_hosts([".nodes.example.org"]).is_known(host)


def test_the_names_of_the_node_are_known(monkeypatch):
    monkeypatch.setenv("NODE_NAME", "node-7.example.org")

    assert known_hosts([]).is_known("node-7.example.org")
    assert known_hosts([]).is_known(os.uname().nodename)


def test_a_star_stands_for_every_name():
    assert known_hosts(["*"]).is_known("evil.example")


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/observe", "/metrics", "/safe-mode", "/plan", "/"])
def test_a_page_that_rebinds_its_name_reads_nothing(agent, path, host):
    response = agent.tcp.get(path, headers={"host": host})

    assert response.status_code == 403
    assert response.json() == {
        "error": f"{host!r} is no name of this agent; [server] hosts can add it"
    }


def test_a_page_that_rebinds_its_name_does_not_act_even_with_the_token(start, view, token_file):
    agent = start(token_file)
    headers = {
        "authorization": f"Bearer {token_file.read_text().strip()}",
        "origin": "http://evil.example",
        "host": "evil.example",
    }

    response = agent.tcp.put("/safe-mode", json={"requested": True}, headers=headers)

    assert response.status_code == 403
    assert view.requests == {}
    assert view.audited[0][2].startswith("403 'evil.example' is no name of this agent")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_are_answered_by_any_name(agent, path):
    assert agent.tcp.get(path, headers={"host": "evil.example"}).status_code == 200


def test_the_local_socket_has_no_name(agent):
    assert agent.unix.get("/observe", headers={"host": "evil.example"}).status_code == 200


def test_a_request_without_a_host_is_from_no_browser(agent):
    with agent.connect() as raw:
        raw.sendall(b"GET /safe-mode HTTP/1.0\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 200")


def test_names_are_set_by_settings(view, tmp_path):
    agent = start_server(view, tmp_path, None, hosts=("temper.example.org",))
    try:
        asked = agent.tcp.get("/observe", headers={"host": "temper.example.org"})
    finally:
        agent.close()

    assert asked.status_code == 200
