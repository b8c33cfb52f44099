"""The extender over HTTP: what a scheduler may send, and what people may ask."""

import asyncio
import json
import time
from contextlib import suppress
from http import HTTPStatus

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from temper_core import InputError, Tier
from temper_plugin_density.placement.app import MOST_OF_CLIENT, Extender
from temper_plugin_density.placement.asking import BoundPod
from temper_plugin_density.placement.exchange import read_question
from temper_plugin_density.placement.facts import read_node
from temper_plugin_density.placement.ledger import Ledger
from tests.density.placement.made import READER, demand, node_object, pod_object, told

MOST_BYTES = 100_000
CRITICAL = pod_object("db", Tier.CRITICAL, "1")


@pytest.fixture
def ledger():
    ledger, now = Ledger(), time.time()
    ledger.put_node(read_node(node_object("empty", **told(now))))
    ledger.put_node(read_node(node_object("fuller", **told(now, fenced_cores="3"))))
    ledger.put_node(read_node(node_object("idle", **told(now, agent_mode="safe_mode"))))
    return ledger


@pytest.fixture
def client(ledger):
    with TestClient(Extender(READER, ledger, MOST_BYTES).application()) as client:
        yield client


def client_at(application, address):
    """Return a client of that address. Turns are of one event loop, so it has to be awaited."""
    transport = httpx2.ASGITransport(app=application, client=(address, 1))
    return httpx2.AsyncClient(transport=transport, base_url="http://extender")


def asked(*names, pod=CRITICAL):
    return {"Pod": pod, "Nodes": None, "NodeNames": list(names)}


def test_the_scheduler_is_answered_by_name(client):
    answer = client.post("/prioritize", json=asked("empty", "idle", "nowhere", "fuller"))

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == [
        {"host": "empty", "score": 9},
        {"host": "idle", "score": 0},
        {"host": "nowhere", "score": 5},
        {"host": "fuller", "score": 4},
    ]


def test_the_scheduler_is_answered_by_objects_of_which_none_was_heard_of_before(client):
    stranger = node_object("stranger", **told(time.time(), fenced_cores="6"))
    nodes = {"metadata": {}, "items": [node_object("empty"), stranger]}

    answer = client.post("/prioritize", json={"Pod": CRITICAL, "Nodes": nodes, "NodeNames": None})

    assert answer.json() == [{"host": "empty", "score": 9}, {"host": "stranger", "score": 0}]


def test_no_nodes_have_no_scores(client):
    assert client.post("/prioritize", json=asked()).json() == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is not JSON: Expecting value"),
        (b"{", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"[" * 50_000, "the body is not JSON"),
        (b"[]", "the body must be a JSON object, not list"),
        (b"{}", "Pod: must be a Pod object (the keys of ExtenderArgs are capitalised)"),
        (b'{"Pod": {}, "NodeNames": []}', "Pod: "),
        (json.dumps({"Pod": CRITICAL}).encode(), "neither NodeNames nor Nodes"),
        (json.dumps({"Pod": CRITICAL, "NodeNames": "a"}).encode(), "NodeNames: must be a list"),
        (json.dumps({"Pod": CRITICAL, "NodeNames": [1]}).encode(), "NodeNames: must be a list"),
        (json.dumps({"Pod": CRITICAL, "Nodes": 3}).encode(), "neither NodeNames nor Nodes"),
        (
            json.dumps({"Pod": {"spec": {"containers": [{}] * 1001}}, "NodeNames": []}).encode(),
            "spec.containers: must be at most 1000",
        ),
    ],
)
def test_what_is_no_question_is_refused_in_one_line(client, body, said):
    answer = client.post("/prioritize", content=body)

    assert answer.status_code == 400
    assert answer.text.startswith(said)
    assert answer.text.count("\n") == 1


def test_of_a_pod_that_cannot_be_read_the_field_is_named(client):
    pod = pod_object("db", Tier.CRITICAL, "a lot")

    answer = client.post("/prioritize", json=asked("empty", pod=pod))

    assert answer.status_code == 400
    assert "containers[0].resources.requests.cpu" in answer.text


def test_a_pod_that_is_being_deleted_is_refused(client):
    pod = pod_object("db", deletionTimestamp="2026-11-21T10:00:00Z")

    assert client.post("/prioritize", json=asked("empty", pod=pod)).status_code == 400


@pytest.mark.parametrize("path", ["/prioritize", "/debug/score"])
def test_a_body_that_is_too_large_is_not_read_to_its_end(client, path):
    answer = client.post(path, content=b" " * (MOST_BYTES + 1))

    assert answer.status_code == 413
    assert answer.text == f"the body is larger than {MOST_BYTES} bytes\n"


HALF = {"metadata": {"name": "a", "annotations": {"temper.codes/agent-mode": "\ud800"}}}
HALVES = [
    {"NodeNames": ["\ud800"]},
    {"Nodes": {"items": [HALF]}},
    {"NodeNames": [], "Pod": {"\ud800": 1, "metadata": {"name": "\ud800"}, "spec": {"\ud800": 1}}},
]


@pytest.mark.parametrize("path", ["/prioritize", "/debug/score"])
@pytest.mark.parametrize("asking", HALVES)
def test_halves_of_surrogate_pairs_are_answered_or_refused(client, path, asking):
    body = json.dumps({"Pod": CRITICAL, **asking}).encode()

    answer = client.post(path, content=body)

    assert answer.status_code in (200, 400)
    assert answer.text


def test_more_nodes_than_any_cluster_has_are_refused():
    names = {"Pod": CRITICAL, "NodeNames": ["a"] * 10_001}
    nodes = {"Pod": CRITICAL, "Nodes": {"items": [{}] * 10_001}}

    for asking in (names, nodes):
        with pytest.raises(InputError, match="must be at most 10000"):
            read_question(json.dumps(asking).encode(), READER)


@pytest.mark.parametrize("value", [b"{}", b"[]", b"1", b"1e9", b'""'])
def test_a_body_of_very_many_values_is_not_parsed(value):
    with pytest.raises(InputError, match="more than 100000 values"):
        read_question(b'{"Pod": [' + (value + b",") * 100_000, READER)


def test_a_name_that_no_node_can_have_is_refused():
    body = json.dumps(asked("n" * 254)).encode()

    with pytest.raises(InputError, match="NodeNames: a name has more than 253 characters"):
        read_question(body, READER)


def test_a_small_request_comes_between_large_ones(ledger):
    """Large bodies are parsed one at a time, and small ones do not queue behind them.

    Of the large ones as many wait as the bound of all bodies has room for.
    """
    application = Extender(READER, ledger).application()
    small = json.dumps(asked("empty")).encode()
    large = json.dumps({**asked("empty"), "x": ["y" * 40] * 60_000}).encode()
    done = []

    async def send(client, name, body):
        answer = await client.post("/prioritize", content=body)
        done.append((name, answer.status_code))

    async def run():
        transport = httpx2.ASGITransport(app=application)
        client = httpx2.AsyncClient(transport=transport, base_url="http://extender")
        async with client, asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(send(client, "large", large))
            group.create_task(send(client, "small", small))

    asyncio.run(run())

    answered = [name for name, status in done if status == HTTPStatus.OK]
    refused = [(name, status) for name, status in done if status != HTTPStatus.OK]
    assert "small" in answered[:3]
    assert "large" in answered
    assert set(refused) <= {("large", HTTPStatus.SERVICE_UNAVAILABLE)}
    assert len(done) == 9


def test_small_questions_of_one_address_do_not_keep_that_of_another_waiting(ledger):
    application = Extender(READER, ledger).application()
    done = []

    async def ask(client, name):
        answer = await client.post("/prioritize", json=asked("empty"))
        done.append((name, answer.status_code))

    async def run():
        greedy, scheduler = (client_at(application, f"10.0.0.{host}") for host in (1, 2))
        async with greedy, scheduler:
            questions = [ask(greedy, "greedy") for _ in range(40)]
            await asyncio.gather(*questions, ask(scheduler, "scheduler"))

    asyncio.run(run())

    assert {status for _, status in done} == {HTTPStatus.OK}
    assert ("scheduler", HTTPStatus.OK) in done[:4]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["Pod", "Nodes", "NodeNames", "items", "metadata", "spec", "name"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=150)
def test_any_json_is_a_question_or_is_refused(document):
    with suppress(InputError):
        question = read_question(json.dumps(document).encode(), READER)

        assert all(0 <= each.points <= 100 for each in question.scores(Ledger()))


def test_the_last_answer_for_a_pod_is_explained_as_it_was(client, ledger):
    client.post("/prioritize", json=asked("fuller", "empty"))
    ledger.put_pod(BoundPod("uid-db", "empty", demand(Tier.CRITICAL, 1000, "shop/db")))

    by_key = client.get("/debug/score", params={"pod": "shop/db"}).json()
    by_both = client.get("/debug/score", params={"namespace": "shop", "pod": "db"}).json()

    assert by_key == by_both
    assert by_key["source"] == "what the scheduler was answered"
    assert by_key["bound_to"] == "empty"
    best, other = by_key["nodes"]
    assert (best["node"], best["score"], best["rule"]) == ("empty", 9, "contention")
    assert best["reason"] == ("1 of 7 fenceable cores would be fenced, 0 of them without this pod")
    assert other["inputs"]["fenced_told"] == 3


def test_an_answer_to_another_address_is_told_apart(ledger):
    application = Extender(READER, ledger).application()

    async def ask():
        scheduler, other = (client_at(application, f"10.0.0.{host}") for host in (1, 2))
        async with scheduler, other:
            await scheduler.post("/prioritize", json=asked("fuller", "empty"))
            await other.post("/prioritize", json=asked("idle"))
            return [
                await scheduler.get(f"/debug/score?pod=shop/db{query}")
                for query in ("", "&asked_by=10.0.0.1", "&asked_by=10.1.1.1")
            ]

    newest, chosen, unknown = asyncio.run(ask())

    assert newest.json()["asked_by"] == "10.0.0.2"
    assert newest.json()["also_asked_by"] == ["10.0.0.1"]
    assert chosen.json()["asked_by"] == "10.0.0.1"
    assert chosen.json()["also_asked_by"] == ["10.0.0.2"]
    assert {node["node"] for node in chosen.json()["nodes"]} == {"fuller", "empty"}
    assert unknown.status_code == 404


def test_an_explanation_has_no_more_nodes_than_a_slow_reader_may_hold(client):
    many = asked(*(f"node-{number}" for number in range(2_000)))
    client.post("/prioritize", json=many)

    for answer in (
        client.get("/debug/score?namespace=shop&pod=db"),
        client.post("/debug/score", json=many),
    ):
        assert len(answer.json()["nodes"]) == 500
        assert answer.json()["nodes_left_out"] == 1_500


def test_a_bound_pod_that_was_not_asked_about_is_reckoned_now(client, ledger):
    ledger.put_pod(BoundPod("uid-db", "empty", demand(Tier.CRITICAL, 1000, "shop/db")))

    said = client.get("/debug/score?namespace=shop&pod=db").json()

    assert said["source"] == "reckoned now, as if another such pod came"
    assert {node["node"] for node in said["nodes"]} == {"empty", "fuller", "idle"}


@pytest.mark.parametrize("query", ["", "?pod=shop/db", "?namespace=shop"])
def test_a_pod_that_nobody_knows_is_not_found(client, query):
    answer = client.get(f"/debug/score{query}")

    assert answer.status_code == 404
    assert "POST the Pod object" in answer.text


@pytest.mark.parametrize("body", [CRITICAL, asked("empty", "fuller", "idle")])
def test_a_pod_that_is_not_there_yet_can_be_sent_and_nothing_is_remembered(client, body):
    said = client.post("/debug/score", json=body).json()

    assert said["source"] == "reckoned now"
    assert [(node["node"], node["score"]) for node in said["nodes"]] == [
        ("empty", 9),
        ("fuller", 4),
        ("idle", 0),
    ]
    assert client.get("/debug/score?namespace=shop&pod=db").status_code == 404


def test_it_lives_but_is_not_ready_before_everything_was_listed(client):
    ready = client.get("/readyz")

    assert client.get("/healthz").text == "ok\n"
    assert ready.status_code == 503
    assert ready.text == "nodes: no request was sent yet; pods: no request was sent yet\n"


def test_the_metrics_count_questions_and_scores_by_rule(client):
    client.post("/prioritize", json=asked("empty", "fuller", "idle"))
    client.post("/prioritize", content=b"{")

    said = client.get("/metrics").text.splitlines()

    assert 'temper_placement_requests_total{outcome="answered"} 1.0' in said
    assert 'temper_placement_requests_total{outcome="refused"} 1.0' in said
    assert 'temper_placement_scores_total{rule="contention"} 2.0' in said
    assert 'temper_placement_scores_total{rule="not_enforcing"} 1.0' in said
    assert 'temper_placement_watch_up{resource="nodes"} 0.0' in said
    assert "temper_placement_nodes 3.0" in said


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/prioritize", 405), ("POST", "/metrics", 405), ("GET", "/filter", 404)],
)
def test_nothing_else_is_answered(client, method, path, status):
    assert client.request(method, path).status_code == status


def test_explanations_take_turns_and_too_many_of_one_client_are_refused(ledger):
    ledger.put_pod(BoundPod("uid-db", "empty", demand(Tier.CRITICAL, 1000, "shop/db")))
    application = Extender(READER, ledger, MOST_BYTES).application()

    async def ask(address, count):
        async with client_at(application, address) as client:
            questions = [client.get("/debug/score?namespace=shop&pod=db") for _ in range(count)]
            return [answer.status_code for answer in await asyncio.gather(*questions)]

    async def both():
        return await asyncio.gather(ask("10.0.0.1", 40), ask("10.0.0.2", 1))

    greedy, other = asyncio.run(both())

    assert 1 <= greedy.count(200) <= MOST_OF_CLIENT + 1
    assert greedy.count(200) + greedy.count(503) == 40
    assert other == [200]
