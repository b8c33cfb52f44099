"""Actions through the fleet server, carried out by two real agents of this machine.

The API server, which lists their pods, is made. tests/kubernetes/fleet has the real one.
"""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx2
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from temper_core import InputError
from temper_kube.access import Access
from temper_plugin_dashboard.fleet import acting, asking
from temper_plugin_dashboard.fleet.acting import OF_NODE
from temper_plugin_dashboard.fleet.actions import MOST_NODES, outcome_of, safe_mode
from temper_plugin_dashboard.fleet.application import FleetServer
from temper_plugin_dashboard.fleet.asking import AgentDoor, Way
from temper_plugin_dashboard.fleet.command import dashboard
from temper_plugin_dashboard.fleet.sessions import Sessions, TokenFile
from tests.dashboard.dashboard_agent import TOKEN as OF_AGENTS
from tests.dashboard.dashboard_agent import DashboardAgent
from tests.dashboard.fleet.made_fleet import NODES, PODS, TOKEN, log_in, until, until_node
from tests.kube_client.made_server import MadeServer, agent, listed, node
from tests.patience import PATIENCE_S

PATH, RELOAD, TRACES = "/fleet/safe-mode", "/fleet/profiles/reload", "/fleet/traces"
BEARER = {"authorization": f"Bearer {OF_AGENTS}"}
WISH = {"nodes": ["n1"], "requested": True, "reason": "a test"}


@pytest.fixture(scope="module")
def agents(program, tmp_path_factory):  # noqa: ARG001 - it has to run
    """Two agents, by the names of their nodes."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("n1", "n2")}
    both = {
        name: DashboardAgent(folder, f'[profiles]\ndirectory = "{folder}/profiles"')
        for name, folder in folders.items()
    }
    for each in both.values():
        (each.folder / "profiles").mkdir()
        each.start()
    yield both
    for each in both.values():
        each.stop()


def pod_at(name, address, port):
    """Return the pod of an agent that is ready at *address*."""
    pod = agent(name)
    pod["status"]["podIP"] = address
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": port}]
    return pod


@pytest.fixture
def api(agents):
    """An API server with the nodes of the agents, and n3 without one."""
    server = MadeServer()
    pods = [pod_at(name, each.host, each.port) for name, each in agents.items()]
    server.answers[PODS] = listed(*pods)
    server.answers[NODES] = listed(node("n1"), node("n2"), node("n3"))
    yield server
    server.close()


def address_of(made):
    """Return host and port of a made server."""
    host, _, port = made.url.removeprefix("http://").partition(":")
    return host, int(port)


def served(api, folder, *, has_actions=False, **options):
    """Return the application of a fleet server."""
    token = folder / "token"
    token.write_text(TOKEN)
    door = AgentDoor(Access(*address_of(api), is_tls=False), Way.POD, has_actions=has_actions)
    return FleetServer(door, Sessions(TokenFile(token)), "temper", **options).application()


@pytest.fixture
def client(api, tmp_path):
    """A client with an open session of a server with actions."""
    with TestClient(served(api, tmp_path, every_s=0.05, has_actions=True)) as client:
        assert log_in(client).status_code == 200
        yield client


@pytest.fixture(autouse=True)
def no_request_stands(agents):
    """Withdraw what a test has left at the agents."""
    yield
    for each in agents.values():
        wish = {"requested": False, "requester": "dashboard-user"}
        httpx2.put(f"{each.address}safe-mode", json=wish, headers=BEARER).raise_for_status()


def standing(agent):
    return agent.read("safe-mode")["requests"]


def audited(agent):
    """Return requester and outcome of the last request that acts, as the agent recorded them."""
    events = agent.read("events")["events"]
    last = max((each for each in events if each["outcome"]), key=lambda each: each["number"])
    return last["requester"], last["outcome"]


def test_safe_mode_of_a_selection_is_requested_and_withdrawn(client, agents):
    wish = {**WISH, "nodes": ["n2", "n1"]}
    asked = client.put(PATH, json=wish, headers=BEARER).json()["nodes"]
    stood = {name: standing(each) for name, each in agents.items()}
    withdrawn = client.put(PATH, json={"nodes": ["n1"], "requested": False}, headers=BEARER).json()[
        "nodes"
    ]

    assert asked == [
        {"node": "n2", "done": "safe mode is requested", "error": ""},
        {"node": "n1", "done": "safe mode is requested", "error": ""},
    ]
    assert [each["dashboard-user"]["reason"] for each in stood.values()] == ["a test"] * 2
    assert withdrawn == [{"node": "n1", "done": "withdrawn", "error": ""}]
    assert (standing(agents["n1"]), len(standing(agents["n2"]))) == ({}, 1)


def test_profiles_of_a_selection_are_reloaded_and_what_is_broken_is_named(client, agents):
    broken = agents["n2"].folder / "profiles" / "broken.toml"
    broken.write_text("id =")
    wish = {"nodes": ["n1", "n2", "n3"]}
    with capture_logs() as lines:
        told = client.post(RELOAD, json=wish, headers=BEARER).json()["nodes"]
    broken.unlink()

    first, second, third = told
    assert first["done"].endswith("profiles are loaded, none has changed")
    assert f"not loaded: {broken}: " in second["done"]
    assert third["error"] == "no agent runs there"
    logged = [each for each in lines if each["event"] == "profile_reload_asked"]
    assert [each["outcome"] for each in logged] == [each["done"] or each["error"] for each in told]
    assert audited(agents["n1"])[0].startswith("token ops")


def test_a_trace_is_captured_on_the_chosen_node_alone_and_audited(client, agents):
    wish = {"nodes": ["n2"], "seconds": 0.2}
    with capture_logs() as lines:
        (told,) = client.post(TRACES, json=wish, headers=BEARER).json()["nodes"]

    (trace,) = agents["n2"].read("traces")["traces"]
    assert told == {"node": "n2", "done": f"the capture {trace['id']} has begun", "error": ""}
    assert trace["by"] == "token ops"
    assert trace["asked"]["seconds"] == 0.2
    assert agents["n1"].read("traces")["traces"] == []
    (line,) = (each for each in lines if each["event"] == "trace_asked")
    assert (line["node"], line["seconds"], line["pod"]) == ("n2", 0.2, "")
    assert audited(agents["n2"])[0].startswith("token ops")
    assert OF_AGENTS not in str(lines)


def test_the_reason_why_an_agent_captures_nothing_is_told(client, agents):
    wish = {"nodes": ["n1"], "pod": "no/where"}
    (told,) = client.post(TRACES, json=wish, headers=BEARER).json()["nodes"]

    assert "no/where" in told["error"]
    assert agents["n1"].read("traces")["traces"] == []


@pytest.mark.parametrize("path", [RELOAD, TRACES])
def test_no_other_action_passes_without_a_session_or_a_token(client, agents, path):
    wish = {"nodes": ["n1"]}
    tokenless = client.post(path, json=wish)
    foreign = client.post(path, json=wish, headers={**BEARER, "origin": "https://evil.example"})
    wrong = client.post(path, json=wish, headers={"authorization": "Bearer wrong-wrong-wrong"})
    client.cookies.clear()
    sessionless = client.post(path, json=wish, headers=BEARER)
    log_in(client)

    answers = (tokenless, foreign, sessionless)
    assert [each.status_code for each in answers] == [400, 400, 401]
    assert "needs the bearer token" in wrong.json()["nodes"][0]["error"]
    assert agents["n1"].read("traces")["traces"] == []


@pytest.mark.parametrize(
    ("path", "change", "why"),
    [
        (TRACES, {"nodes": []}, "1 to 64 names"),
        (TRACES, {"seconds": 0}, "seconds: must be 0.1 to 30"),
        (TRACES, {"seconds": 31}, "seconds: must be 0.1 to 30"),
        (TRACES, {"seconds": "5"}, "seconds"),
        (TRACES, {"pod": "a\nb"}, "pod: must be one line"),
        (TRACES, {"pod": "x" * 601}, "600 characters"),
        (TRACES, {"backend": "bpf"}, "backend"),
        (RELOAD, {"nodes": ["n1", "n1"]}, "named once"),
        (RELOAD, {"seconds": 5}, "seconds"),
    ],
)
def test_a_body_of_another_action_that_does_not_fit_is_refused(client, agents, path, change, why):
    refused = client.post(path, json={"nodes": ["n1"], **change}, headers=BEARER)

    assert refused.status_code == 400
    assert why in refused.json()["error"]
    assert agents["n1"].read("traces")["traces"] == []


def test_what_does_not_stand_is_not_said_to_be_withdrawn(client):
    wish = {"nodes": ["n1"], "requested": False}

    (answer,) = client.put(PATH, json=wish, headers=BEARER).json()["nodes"]

    assert answer["done"] == "no request of a page stood there"


def test_a_change_is_audited_at_both_ends(client, agents):
    with capture_logs() as lines:
        client.put(PATH, json=WISH, headers=BEARER).raise_for_status()

    (line,) = (each for each in lines if each["event"] == "safe_mode_asked")
    requester, outcome = audited(agents["n1"])
    assert (line["node"], line["requested"], line["reason"]) == ("n1", True, "a test")
    assert (line["outcome"], line["address"]) == ("safe mode is requested", "testclient")
    assert requester.startswith("token ops")
    assert outcome == "done"
    assert OF_AGENTS not in str(lines)


def test_a_token_that_is_not_the_agents_changes_nothing_and_is_audited(client, agents):
    with capture_logs() as lines:
        answer = client.put(PATH, json=WISH, headers={"authorization": f"Bearer {TOKEN}x"})

    (told,) = answer.json()["nodes"]
    assert "needs the bearer token" in told["error"]
    assert standing(agents["n1"]) == {}
    assert audited(agents["n1"])[1].startswith("401")
    assert [each["outcome"] for each in lines if each["event"] == "safe_mode_asked"] == [
        told["error"]
    ]


def test_nodes_that_cannot_be_asked_are_named_and_the_others_are_changed(client, agents):
    wish = {**WISH, "nodes": ["n1", "n3", "n4"]}

    told = {
        each["node"]: each for each in client.put(PATH, json=wish, headers=BEARER).json()["nodes"]
    }

    assert told["n1"]["done"]
    assert told["n3"]["error"] == "no agent runs there"
    assert told["n4"]["error"] == "the cluster has no such node"
    assert list(standing(agents["n1"])) == ["dashboard-user"]


def test_an_agent_that_does_not_answer_keeps_no_other_from_its_change(
    client, api, agents, monkeypatch
):
    for module in ("asking", "survey"):
        monkeypatch.setattr(f"temper_plugin_dashboard.fleet.{module}.ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        n1 = pod_at("n1", agents["n1"].host, agents["n1"].port)
        api.answers[PODS] = listed(pod_at("n2", *silent.getsockname()), n1)
        until_node(client, "n2", lambda each: each["state"] == "away")
        wish = {**WISH, "nodes": ["n2", "n1"]}
        told = client.put(PATH, json=wish, headers=BEARER).json()["nodes"]

    assert "does not answer" in told[0]["error"]
    assert told[1]["done"] == "safe mode is requested"
    assert standing(agents["n2"]) == {}
    assert 'outcome="no_answer"} 1.0' in client.get("/metrics").text


def test_the_token_goes_to_no_address_that_was_once_an_agents(api, agents, tmp_path):
    """The address of a pod that has ended may be that of any other pod."""
    real = pod_at("n1", agents["n1"].host, agents["n1"].port)
    seldom = served(api, tmp_path, has_actions=True, every_s=3600)
    with closing(MadeServer()) as heir, TestClient(seldom) as client:
        api.answers[PODS] = listed(pod_at("n1", *address_of(heir)))
        log_in(client)
        until_node(client, "n1", lambda each: each["state"] == "away")
        api.answers[PODS] = listed(real)
        answers = client.put(PATH, json=WISH, headers=BEARER).json()["nodes"]

        assert answers == [{"node": "n1", "done": "safe mode is requested", "error": ""}]
        assert [method for method, _, _ in heir.asked] == ["GET"]


def test_without_a_list_of_the_agents_no_token_is_sent(client, api, agents):
    until_node(client, "n1", lambda each: each["state"] == "answers")
    api.answers[PODS] = (500, {"kind": "Status", "message": "away"})

    refused = client.put(PATH, json=WISH, headers=BEARER)

    assert refused.status_code == 503
    assert "away" in refused.json()["error"]
    assert standing(agents["n1"]) == {}


@pytest.mark.parametrize(
    "answer",
    [{}, [], {"requests": {}}, {"requests": {"operator": {}}}, {"requests": ["dashboard-user"]}],
)
def test_an_answer_that_does_not_confirm_is_no_success(client, api, answer):
    with closing(MadeServer()) as made:
        made.answers["/safe-mode"] = answer
        api.answers[PODS] = listed(pod_at("n1", *address_of(made)))
        (told,) = client.put(PATH, json=WISH, headers=BEARER).json()["nodes"]

    assert ("PUT", "/safe-mode", {}) in made.asked
    assert told["done"] == ""
    assert "does not confirm" in told["error"]


@pytest.fixture
def _patient(monkeypatch):
    """Agents are waited for as long as a test waits."""
    monkeypatch.setattr(asking, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(acting, "WAITS_S", PATIENCE_S)


def in_session(client):
    """Return the headers of a new session."""
    client.cookies.clear()
    answer = log_in(client)
    client.cookies.clear()
    cookie = f"temper_session={answer.cookies['temper_session']}"
    return {**BEARER, "cookie": cookie, "temper-session": answer.json()["key"]}


def lists_of_agents(api):
    return sum(path == PODS for _, path, _ in api.asked)


@pytest.mark.usefixtures("_patient")
def test_a_node_that_hangs_keeps_no_other_session_from_acting(api, agents, tmp_path, monkeypatch):
    """A reader of the page needs no token of the agents for such requests."""
    monkeypatch.setattr(acting, "AT_ONCE", OF_NODE + 1)
    n1 = pod_at("n1", agents["n1"].host, agents["n1"].port)
    wish, many = {**WISH, "nodes": ["n2"]}, OF_NODE + 2
    with (
        TestClient(served(api, tmp_path, has_actions=True)) as client,
        ThreadPoolExecutor(many) as pool,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        api.answers[PODS] = listed(pod_at("n2", *silent.getsockname()), n1)
        sessions = [in_session(client) for _ in range(many + 1)]
        held = [
            pool.submit(client.put, PATH, json=wish, headers=headers) for headers in sessions[1:]
        ]
        until(lambda: lists_of_agents(api) == many)
        (told,) = client.put(PATH, json=WISH, headers=sessions[0]).json()["nodes"]
        answered = [each for each in held if each.done()]

    assert told["done"] == "safe mode is requested"
    assert answered == []


@pytest.mark.usefixtures("_patient")
def test_a_session_has_one_action_at_a_time(api, tmp_path):
    with (
        TestClient(served(api, tmp_path, has_actions=True)) as client,
        ThreadPoolExecutor(1) as pool,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        api.answers[PODS] = listed(pod_at("n2", *silent.getsockname()))
        headers, wish = in_session(client), {**WISH, "nodes": ["n2"]}
        first = pool.submit(client.put, PATH, json=wish, headers=headers)
        until(lambda: lists_of_agents(api) == 1)
        second = client.put(PATH, json=wish, headers=headers)

    assert (second.status_code, second.headers["retry-after"]) == (503, "1")
    assert first.result().status_code == 200


def test_names_of_no_node_make_one_line_of_the_log(client):
    names = [f"made-up-{number}" for number in range(MOST_NODES - 1)]
    with capture_logs() as lines:
        client.put(PATH, json={**WISH, "nodes": ["n3", *names]}, headers=BEARER)

    written = [each for each in lines if each["event"] == "safe_mode_asked"]
    assert [(each["node"], each["outcome"]) for each in written] == [
        ("n3", "no agent runs there"),
        (f"{MOST_NODES - 1} others", "the cluster has no such node"),
    ]


def test_nothing_is_changed_without_a_session(client, agents):
    client.cookies.clear()
    refused = client.put(PATH, json=WISH, headers=BEARER)
    log_in(client)

    assert refused.status_code == 401
    assert standing(agents["n1"]) == {}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {OF_AGENTS}"},
        {"authorization": b"Bearer caf\xe9caf\xe9caf\xe9caf\xe9"},
        {**BEARER, "origin": "https://evil.example"},
        {**BEARER, "sec-fetch-site": "cross-site"},
        {**BEARER, "sec-fetch-site": "same-site"},
        {**BEARER, "content-type": "text/plain"},
    ],
)
def test_a_request_without_a_token_or_of_another_site_is_refused(client, agents, headers):
    refused = client.put(PATH, json=WISH, headers=headers)

    assert refused.status_code == 400
    assert refused.json()["error"].count("\n") == 0
    assert standing(agents["n1"]) == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"nodes": []}, f"1 to {MOST_NODES} names, not 0"),
        ({"nodes": [f"n{number}" for number in range(MOST_NODES + 1)]}, f"1 to {MOST_NODES} names"),
        ({"nodes": ["n1", "n1"]}, "named once"),
        ({"nodes": ["n" * 254]}, "253 characters"),
        ({"nodes": "n1"}, "nodes"),
        ({"nodes": [1]}, "nodes"),
        ({"requested": "true"}, "requested"),
        ({"requested": None}, "requested"),
        ({"reason": ""}, "reason"),
        ({"reason": "a\nb"}, "one line"),
        ({"reason": "x" * 501}, "500 characters"),
        ({"requester": "another"}, "requester"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_with_its_key(client, agents, change, why):
    refused = client.put(PATH, json={**WISH, **change}, headers=BEARER)

    assert refused.status_code == 400
    assert why in refused.json()["error"]
    assert standing(agents["n1"]) == {}


def test_a_body_without_a_bound_is_refused(client):
    headers = {**BEARER, "content-type": "application/json"}

    assert client.put(PATH, content=b" " * 100_000, headers=headers).status_code == 413


def test_the_page_offers_actions_and_counts_them(client):
    client.put(PATH, json=WISH, headers=BEARER)
    client.put(PATH, json=WISH, headers={"authorization": "Bearer wrong-wrong-wrong"})

    told = client.get("/metrics").text
    assert client.get("/fleet/nodes").json()["actions"] is True
    assert 'temper_dashboard_actions_total{outcome="done"} 1.0' in told
    assert 'temper_dashboard_actions_total{outcome="refused"} 1.0' in told
    assert 'temper_dashboard_actions_total{outcome="no_answer"} 0.0' in told


def test_by_default_there_are_no_actions(api, agents, tmp_path):
    with TestClient(served(api, tmp_path)) as client:
        log_in(client)

        for method, path in (("PUT", PATH), ("POST", RELOAD), ("POST", TRACES)):
            refused = client.request(method, path, json=WISH, headers=BEARER)
            assert refused.status_code in {404, 405}
        assert client.get("/fleet/nodes").json()["actions"] is False
    assert standing(agents["n1"]) == {}


def test_the_command_refuses_actions_by_the_proxy(tmp_path):
    token, config = tmp_path / "token", tmp_path / "kubeconfig"
    token.write_text(TOKEN)
    config.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [],"
        " contexts: [{name: x, context: {cluster: c}}], current-context: x}"
    )
    words = ["serve", "--token-file", str(token), "--kubeconfig", str(config), "--actions"]

    done = CliRunner().invoke(dashboard, words)

    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith("--actions: needs --reach pod")


def test_a_request_that_no_disk_keeps_is_named_as_such():
    answer = b'{"requests": {"dashboard-user": {}}, "unkept": "/x cannot be written: full"}'

    assert outcome_of(safe_mode(WISH), answer) == (
        "safe mode is requested, but a restart of the agent forgets it: /x cannot be written: full"
    )
