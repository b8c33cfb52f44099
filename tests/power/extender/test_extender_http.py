"""The extender over real sockets: what a scheduler may send, and what it is answered."""

import asyncio
import json
import socket
import threading
import time

import httpx2
import pytest

from temper_core import InputError
from temper_plugin_power.extender.application import PowerExtender
from temper_plugin_power.extender.cluster import Cluster, Eviction, Owner
from temper_plugin_power.extender.parts import SMALL_BYTES
from temper_plugin_power.extender.questions import read_question
from temper_plugin_power.extender.reading import profile_of_object, twin_of_object
from temper_plugin_power.extender.starting import rules_of
from temper_plugin_power.settings.extender import ExtenderSettings
from temper_plugin_power.settings.power import PowerSettings
from tests.power.extender.serving import (
    CLAIMING,
    EXEMPT,
    NODE_LABEL,
    a_pod,
    a_profile,
    a_twin,
    asked,
    asked_whole,
    preempting,
    serving,
)

MANY_GPUS = {f"nvidia.com/mig-{number}": "1" for number in range(100)}
UNRESOLVABLE = "failedAndUnresolvableNodes"
"""The scheduler evicts no pod on these nodes."""
REJECTED = "temper: performance pod rejected from eco/draining node (class from {})"
BY_LABEL = "temper: performance pod rejected from eco node (label fallback) (class from annotation)"
ECO = {NODE_LABEL: "eco"}
BASE = 83


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of nodes of each class, one with a label alone, and one with an old twin."""
    cluster = Cluster()
    for node_class in ("performance", "eco", "draining", "unknown"):
        cluster.put_twin(*twin_of_object(a_twin(node_class, node_class)))
    cluster.put_twin(*twin_of_object(a_twin("old", "eco", age_s=3600)))
    cluster.put_label("labelled", "eco")
    cluster.put_profile(*profile_of_object(a_profile()))
    return cluster


@pytest.fixture(scope="module")
def client(cluster):
    with (
        serving(cluster) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client,
    ):
        yield client


EVERY = ("performance", "eco", "draining", "unknown", "old", "labelled", "stranger")
TAKING = ["performance", "unknown", "stranger"]


@pytest.mark.parametrize(
    ("pod", "source"),
    [
        (a_pod("performance"), "annotation"),
        (a_pod("gold"), "profile shop/deployment-web"),
        (a_pod(), "profile shop/deployment-web"),
    ],
)
def test_a_performance_pod_is_kept_off_eco_and_draining_nodes(client, pod, source):
    answer = client.post("/filter", json=asked(*EVERY, pod=pod)).json()

    assert answer["nodenames"] == TAKING
    assert set(answer[UNRESOLVABLE]) == {"eco", "draining", "old", "labelled"}
    assert answer[UNRESOLVABLE]["draining"] == REJECTED.format(source)
    assert answer[UNRESOLVABLE]["labelled"].endswith(f"(class from {source})")
    assert "error" not in answer


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("standard"),
        a_pod(owner="other"),
        a_pod(namespace="another"),
        *EXEMPT,
    ],
)
def test_any_other_pod_may_be_anywhere(client, pod):
    answer = client.post("/filter", json=asked(*EVERY, pod=pod)).json()

    assert answer == {"nodenames": list(EVERY)}


@pytest.mark.parametrize("pod", EXEMPT)
def test_a_whole_eco_node_takes_a_pod_that_is_needed_there(client, pod):
    answer = client.post("/filter", json=asked_whole({"eco": {NODE_LABEL: "eco"}}, pod)).json()

    assert [each["metadata"]["name"] for each in answer["nodes"]["items"]] == ["eco"]


@pytest.mark.parametrize("pod", CLAIMING)
def test_a_pod_that_claims_to_be_needed_is_rejected(client, pod):
    answer = client.post("/filter", json=asked(*EVERY, pod=pod)).json()

    assert answer["nodenames"] == TAKING


def test_whole_nodes_are_answered_with_their_names_and_labels(client):
    labels = {NODE_LABEL: "performance", "zone": "a"}

    answer = client.post("/filter", json=asked_whole({"performance": labels, "eco": {}})).json()

    assert answer == {
        "nodes": {"items": [{"metadata": {"name": "performance", "labels": labels}}]},
        UNRESOLVABLE: {"eco": REJECTED.format("annotation")},
    }


def test_the_label_of_a_whole_node_is_newer_than_that_of_the_cache(client):
    labels = {"labelled": {NODE_LABEL: "performance"}, "stranger": {NODE_LABEL: "eco"}}

    answer = client.post("/filter", json=asked_whole(labels)).json()

    assert [item["metadata"]["name"] for item in answer["nodes"]["items"]] == ["labelled"]
    assert answer[UNRESOLVABLE] == {"stranger": BY_LABEL}


@pytest.mark.parametrize(
    "question", [asked("fresh", "stale"), asked_whole(dict.fromkeys(("fresh", "stale"), ECO))]
)
def test_the_label_counts_only_without_a_fresh_twin(question):
    """By default the operator writes twins and no labels, so that a label may stay for good."""
    cluster = Cluster()
    for name, age_s in (("fresh", 0), ("stale", 3600)):
        cluster.put_twin(*twin_of_object(a_twin(name, age_s=age_s)))
        cluster.put_label(name, "eco")

    with serving(cluster) as port:
        url = f"http://127.0.0.1:{port}/filter"
        answer = httpx2.post(url, json=question, trust_env=False, timeout=30).json()

    assert answer[UNRESOLVABLE] == {"stale": BY_LABEL}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (asked("eco"), {"nodenames": [], UNRESOLVABLE: {"eco": REJECTED.format("annotation")}}),
        (asked(), {"nodenames": []}),
        (asked_whole({}), {"nodes": {"items": []}}),
        ({"Pod": a_pod(), "Nodes": {"metadata": {}, "items": None}}, {"nodes": {"items": []}}),
        ({"Pod": a_pod()}, {"nodenames": []}),
        ({"Pod": a_pod(), "Nodes": None, "NodeNames": None}, {"nodenames": []}),
    ],
)
def test_no_node_is_an_empty_list_and_never_null(client, question, answer):
    assert client.post("/filter", json=question).json() == answer


@pytest.mark.parametrize(
    ("pod", "nodenames", "nodes"),
    [
        ("Pod", "NodeNames", "Nodes"),
        ("pod", "nodenames", "nodes"),
        ("pod", "nodeNames", "nodes"),
        ("POD", "NODENAMES", "NODES"),
        ("pOd", "nOdEnAmEs", "nOdEs"),
    ],
)
def test_the_keys_may_be_written_in_any_case(client, pod, nodenames, nodes):
    body = {pod: a_pod("performance"), nodenames: ["eco", "unknown"]}
    whole = {pod: a_pod("performance"), nodes: {"items": [{"metadata": {"name": "eco"}}]}}

    assert client.post("/filter", json=body).json()["nodenames"] == ["unknown"]
    assert client.post("/prioritize", json=whole).json() == [{"host": "eco", "score": BASE}]


def test_whole_nodes_win_over_names(client):
    body = {**asked_whole({"eco": {}}), "NodeNames": ["performance"]}

    assert [each["host"] for each in client.post("/prioritize", json=body).json()] == ["eco"]


@pytest.mark.parametrize(
    ("pod", "scores"),
    [
        (a_pod("performance"), {"performance": BASE + 15, "eco": BASE, "draining": BASE}),
        (a_pod("standard"), {"performance": BASE - 6, "eco": BASE + 10, "draining": BASE}),
        (a_pod("standard"), {"old": 50, "labelled": 50, "stranger": 50}),
    ],
)
def test_each_node_is_scored_in_the_order_of_the_question(client, pod, scores):
    answer = client.post("/prioritize", json=asked(*scores, pod=pod)).json()

    assert answer == [{"host": node, "score": score} for node, score in scores.items()]


def test_no_nodes_have_no_scores(client):
    assert client.post("/prioritize", json=asked()).text == "[]"


def test_on_the_scale_of_a_scheduler_halves_go_away_from_zero(cluster):
    settings = PowerSettings(extender=ExtenderSettings(score_scale=10))
    cluster.put_twin(*twin_of_object(a_twin("half", "unknown", headroom=85)))

    with serving(cluster, settings) as port:
        url = f"http://127.0.0.1:{port}/prioritize"
        answer = httpx2.post(url, json=asked("half", "eco", "stranger"), trust_env=False)

    assert [each["score"] for each in answer.json()] == [9, 8, 5]


def test_a_capped_node_is_worse_the_more_a_cap_slows_the_pod(cluster, client):
    cluster.put_twin(*twin_of_object(a_twin("capped", "eco", cpu_pct=60)))
    pods = [a_pod("standard", cpu_sensitivity=each) for each in ("high", "medium", "low")]

    scores = [
        client.post("/prioritize", json=asked("capped", pod=pod)).json()[0]["score"]
        for pod in (*pods, a_pod("standard", owner="unprofiled"))
    ]

    assert scores == [BASE + 10 - 16, BASE + 10 - 8, int(BASE + 10 - 3.2), BASE + 10]


def test_the_evicted_pods_of_an_owner_are_kept_off_eco_nodes_for_a_while(cluster, client):
    owner = Owner("shop", "ReplicaSet", "moved-77f")
    question = asked("eco", "draining", pod=a_pod("standard", owner="moved"))
    now = time.time()
    cluster.put_eviction(owner, Eviction("eco", now - 29 * 60))

    rejected = client.post("/filter", json=question).json()
    scores = client.post("/prioritize", json=question).json()
    cluster.put_eviction(owner, Eviction("eco", now - 31 * 60))
    later = client.post("/filter", json=question).json()

    assert rejected[UNRESOLVABLE]["eco"] == REJECTED.format("eviction")
    assert rejected["nodenames"] == []
    assert [each["score"] for each in scores] == [BASE + 10 - 25, BASE]
    assert later == {"nodenames": ["eco", "draining"]}


@pytest.mark.parametrize("path", ["/filter", "/prioritize"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is not JSON: Expecting value"),
        (b"{", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"[" * 50_000, "the body is not JSON"),
        (b"[]", "the body must be a JSON object, not list"),
        (b"{}", "pod: must be a Pod object"),
        (b'{"Pod": [], "NodeNames": []}', "pod: must be a Pod object"),
        (b'{"Pod": {}, "NodeNames": "a"}', "nodenames: must be a list of names"),
        (b'{"Pod": {}, "NodeNames": [1]}', "nodenames: must be texts of at most 253"),
        (b'{"Pod": {}, "Nodes": 3}', "nodes: must be a NodeList"),
        (b'{"Pod": {}, "Nodes": {"items": 3}}', "nodes.items: must be a list of nodes"),
        (
            b'{"Pod": {}, "Nodes": {"items": [{}]}}',
            "nodes.items: a node has no name",
        ),
        (b'{"Pod": [' + b"{}," * 100_000 + b"{}]}", "the body is not JSON, or a value is too"),
        (json.dumps(asked("n" * 254)).encode(), "nodenames: must be texts of at most 253"),
        (json.dumps(asked(*["n"] * 50_001)).encode(), "nodenames: must be at most 50000"),
        (
            json.dumps({"Pod": {"spec": {"containers": [{}] * 1001}}}).encode(),
            "pod.spec.containers: must be at most 1000",
        ),
        (
            json.dumps(
                {"Pod": {"spec": {"containers": [{"resources": {"limits": MANY_GPUS}}] * 101}}}
            ).encode(),
            "pod.spec: must name at most 10000 resources",
        ),
    ],
)
def test_what_is_no_question_is_refused_in_one_line(client, path, body, said):
    answer = client.post(path, content=body)

    assert (answer.status_code, answer.text.count("\n")) == (400, 1)
    assert answer.text.startswith(said)


@pytest.mark.parametrize("path", ["/filter", "/prioritize"])
def test_a_body_that_is_too_large_is_not_read_to_its_end(path):
    with serving(most_bytes=100_000) as port:
        answer = httpx2.post(f"http://127.0.0.1:{port}{path}", content=b" " * 100_001)

    assert (answer.status_code, answer.text) == (413, "the body is larger than 100000 bytes\n")


def test_a_body_that_does_not_come_is_refused_after_the_deadline():
    with serving(deadline_s=0.3) as port, socket.create_connection(("127.0.0.1", port)) as sending:
        sending.sendall(b"POST /filter HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{")

        answer = sending.makefile("rb").readline()

    assert answer.split()[1] in (b"408", b"503")


def test_more_labels_than_any_cluster_has_are_refused():
    labels = {f"l{number}": "" for number in range(80_000)}
    body = json.dumps(asked_whole({f"n{number}": labels for number in range(7)})).encode()

    with pytest.raises(InputError, match="must have at most 500000 labels"):
        asyncio.run(read_question(body))


def test_labels_that_no_api_server_takes_are_left_out(client):
    labels = {"zone": "a", "k" * 318: "", "long": "v" * 64, "smile": "\N{GRINNING FACE}"}

    answer = client.post("/filter", json=asked_whole({"performance": labels})).json()

    assert answer["nodes"]["items"][0]["metadata"]["labels"] == {"zone": "a"}


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/preempt"])
@pytest.mark.parametrize("size", [0, 2 * SMALL_BYTES])
def test_addresses_take_turns_however_many_questions_one_of_them_asks(path, size):
    application = PowerExtender(rules_of(PowerSettings()), Cluster(), deadline_s=600).application()
    body = json.dumps({**preempting({"a": ["1"]}), **asked("a"), "x": "y" * size}).encode()
    done = []

    async def ask(address):
        transport = httpx2.ASGITransport(app=application, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://extender") as client:
            answer = await client.post(path, content=body)
        done.append((address, answer.status_code))

    async def run():
        await asyncio.gather(*(ask("10.0.0.1") for _ in range(20)), ask("10.0.0.2"))

    asyncio.run(run())

    assert {status for _, status in done} == {200}
    assert ("10.0.0.2", 200) in done[:4]


def test_a_client_that_reads_no_answers_leaves_room_for_those_of_another():
    application = PowerExtender(rules_of(PowerSettings()), Cluster(), deadline_s=600).application()
    victims = {f"n{number}": ["u" * 250] * 600 for number in range(100)}
    body = json.dumps(preempting(victims)).encode()

    async def run():
        is_read, is_answered = asyncio.Event(), asyncio.Event()
        statuses = {"10.0.0.1": [], "10.0.0.2": []}

        async def ask(address):
            async def receive():
                return {"type": "http.request", "body": body}

            async def send(message):
                if message["type"] == "http.response.start":
                    statuses[address].append(message["status"])
                    if len(statuses["10.0.0.1"]) == 4:
                        is_answered.set()
                elif address == "10.0.0.1":
                    await is_read.wait()

            scope = {"type": "http", "method": "POST", "path": "/preempt", "headers": []}
            await application({**scope, "query_string": b"", "client": (address, 1)}, receive, send)

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(ask("10.0.0.1"))
            await is_answered.wait()
            await ask("10.0.0.2")
            is_read.set()
        return statuses

    statuses = asyncio.run(run())

    assert statuses == {"10.0.0.1": [200, 200, 503, 503], "10.0.0.2": [200]}


def test_a_large_question_does_not_hold_up_a_probe():
    """A probe is answered while 13 MB of nodes are parsed."""
    labels = {f"label-{number}": "v" * 50 for number in range(40)}
    body = json.dumps(asked_whole({f"n{number}": labels for number in range(5_000)})).encode()
    order = []

    with serving(deadline_s=60) as port, httpx2.Client(timeout=60) as probe:
        url = f"http://127.0.0.1:{port}"

        def ask():
            order.append(httpx2.post(f"{url}/filter", content=body, timeout=60).status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        while asking.is_alive():
            assert probe.get(f"{url}/healthz").text == "ok\n"
            order.append("probe")
        asking.join()

    assert order[-2:].count(200) == 1
    assert order.index(200) > 2


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{" + b'"a":1,' * 2_000_000 + b'"b":1}', id="unknown keys"),
        pytest.param(b'{"nodes":{' + b'"a":1,' * 2_000_000 + b'"b":1}}', id="in nodes"),
        pytest.param(b"{" + b" " * 63 * 1024 * 1024 + b"}", id="white space"),
    ],
)
def test_a_body_of_what_is_left_out_does_not_hold_up_a_probe(body):
    """The deadline ends it, and a probe waits for one value at most."""
    answered = threading.Event()

    # Making a client takes a second beside a server of the same process.
    with serving() as port, httpx2.Client(timeout=60) as probe:
        url = f"http://127.0.0.1:{port}"

        def ask():
            httpx2.post(f"{url}/filter", content=body, timeout=60)
            answered.set()

        asking = threading.Thread(target=ask)
        asking.start()
        waits = []
        while not answered.wait(0.05):
            began = time.monotonic()
            assert probe.get(f"{url}/healthz").text == "ok\n"
            waits.append(time.monotonic() - began)
        asking.join()

    assert max(waits, default=0.0) < 1.5


def test_probes_and_what_is_known_are_shown(client):
    assert client.get("/healthz").text == "ok\n"
    assert client.get("/readyz").text == "ok\n"
    shown, alias = (client.get(f"/debug/{name}").json() for name in ("scoring", "score"))

    assert shown == alias
    assert shown["marginalScoringEnabled"] is True
    assert shown["coefficients"]["cpu_util"] == 0.7
    nodes = {node["nodeName"]: node for node in shown["nodes"]}
    assert nodes["old"]["stale"] is True
    assert nodes["eco"] == {
        "nodeName": "eco",
        "schedulableClass": "eco",
        "headroom": 80,
        "coolingStress": 20,
        "psuStress": 10,
        "baseScore": BASE,
        "cpuTotalCores": 0,
        "cpuMaxWattsTotal": 0,
        "gpuCount": 0,
        "gpuMaxWattsPerGPU": 0,
        "hasGpu": False,
        "stale": False,
    }


def test_answers_are_counted():
    cluster = Cluster()
    cluster.put_twin(*twin_of_object(a_twin("eco", "eco")))
    cluster.put_twin(*twin_of_object(a_twin("old", "performance", age_s=3600)))

    with (
        serving(cluster) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        client.post("/filter", json=asked("eco", "old"))
        client.post("/prioritize", json=asked("eco", pod=a_pod("standard")))
        client.post("/prioritize", content=b"{")
        lines = client.get("/metrics").text.splitlines()

    for line in (
        'temper_power_filter_requests_total{workload_class="performance"} 1.0',
        'temper_power_prioritize_requests_total{workload_class="standard"} 1.0',
        'temper_power_class_source_total{source="annotation"} 2.0',
        'temper_power_rejections_total{cause="eco"} 1.0',
        "temper_power_filter_seconds_count 1.0",
        "temper_power_prioritize_seconds_count 1.0",
        f'temper_power_node_score{{node="eco",workload_class="standard"}} {BASE + 10}.0',
        'temper_power_node_score{node="old",workload_class="standard"} 50.0',
        "temper_power_stale_twins 1.0",
    ):
        assert line in lines
