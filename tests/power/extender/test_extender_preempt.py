"""The extender asked which pods may be evicted for another one."""

import json

import httpx2
import pytest

from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.parts import SMALL_BYTES
from temper_plugin_power.extender.reading import twin_of_object
from temper_plugin_power.extender.victims import MOST_ANSWER, MOST_OF_NODE
from tests.power.extender.serving import (
    CLAIMING,
    EXEMPT,
    a_pod,
    a_twin,
    preempting,
    preempting_whole,
    serving,
)

EVERY = {
    "performance": ["u1", "u2"],
    "eco": ["u3"],
    "draining": ["u4"],
    "old": ["u5"],
    "labelled": ["u6"],
    "stranger": [],
}
TAKING = {"performance": ["u1", "u2"], "stranger": []}


@pytest.fixture(scope="module")
def client():
    """Ask an extender that knows a node of each class, a label alone, and an old twin.

    The label of the performance node disagrees with its twin.
    """
    cluster = Cluster()
    for node_class in ("performance", "eco", "draining"):
        cluster.put_twin(*twin_of_object(a_twin(node_class, node_class)))
    cluster.put_twin(*twin_of_object(a_twin("old", "eco", age_s=3600)))
    for name in ("labelled", "performance"):
        cluster.put_label(name, "eco")
    with (
        serving(cluster, deadline_s=60) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize("question_of", [preempting, preempting_whole])
@pytest.mark.parametrize("pod", [None, *CLAIMING])
def test_no_pod_is_evicted_where_the_filter_rejects(client, question_of, pod):
    answer = client.post("/preempt", json=question_of(EVERY, pod=pod)).json()

    assert answer == {"NodeNameToMetaVictims": preempting(TAKING)["NodeNameToMetaVictims"]}


@pytest.mark.parametrize("question_of", [preempting, preempting_whole])
def test_nodes_that_all_reject_leave_no_victims(client, question_of):
    answer = client.post("/preempt", json=question_of({"eco": ["u1"], "draining": ["u2"]}))

    assert answer.json() == {"NodeNameToMetaVictims": {}}


@pytest.mark.parametrize("question_of", [preempting, preempting_whole])
@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod("standard"), id="a pod that may be anywhere"),
        pytest.param({"spec": {}}, id="a pod of which nothing is known"),
        *(pytest.param(each, id="a pod that no node rejects") for each in EXEMPT),
        pytest.param(
            {**a_pod("performance"), "spec": {"containers": [{}] * 1001}},
            id="a pod that the filter refuses",
        ),
    ],
)
def test_the_victims_of_any_other_pod_are_unchanged(client, question_of, pod):
    answer = client.post("/preempt", json=question_of(EVERY, pod=pod)).json()

    assert answer == {"NodeNameToMetaVictims": preempting(EVERY)["NodeNameToMetaVictims"]}


def test_victims_are_unchanged_while_nothing_is_known_of_the_nodes():
    with serving() as port:
        url = f"http://127.0.0.1:{port}/preempt"
        answer = httpx2.post(url, json=preempting(EVERY), trust_env=False).json()

    assert answer == {"NodeNameToMetaVictims": preempting(EVERY)["NodeNameToMetaVictims"]}


def test_violations_of_disruption_budgets_are_kept(client):
    question = preempting({"performance": ["u1"]})
    question["NodeNameToMetaVictims"]["performance"]["NumPDBViolations"] = 2

    answer = client.post("/preempt", json=question).json()

    assert answer["NodeNameToMetaVictims"]["performance"]["NumPDBViolations"] == 2


@pytest.mark.parametrize("pods", [{"Pods": None}, {}])
def test_a_node_without_pods_has_an_empty_list(client, pods):
    question = {"Pod": {}, "nodenametometavictims": {"n1": pods}}

    answer = client.post("/preempt", json=question).json()

    assert answer == {"NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": 0}}}


@pytest.mark.parametrize("question_of", [preempting, preempting_whole])
def test_a_large_question_is_answered_the_same(client, question_of):
    uids = [f"{number:036}" for number in range(100)]
    many = {f"n{number}": uids for number in range(500)}
    body = json.dumps(question_of({**many, "eco": ["u1"]})).encode()

    answer = client.post("/preempt", content=body).json()

    assert len(body) > SMALL_BYTES
    assert answer == {"NodeNameToMetaVictims": preempting(many)["NodeNameToMetaVictims"]}


def of_node(victims, node="n1"):
    return json.dumps({"Pod": {}, "NodeNameToMetaVictims": {node: victims}}).encode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is not JSON: Expecting value"),
        (b"[" * 50_000, "the body is not JSON"),
        (b"[]", "the body must be a JSON object, not list"),
        (b'{"NodeNameToMetaVictims": {}}', "pod: must be a Pod object"),
        (b'{"Pod": {}}', "victims: neither NodeNameToVictims nor NodeNameToMetaVictims"),
        (b'{"Pod": {}, "NodeNameToVictims": null}', "victims: neither NodeNameToVictims"),
        (b'{"Pod": {}, "NodeNameToVictims": []}', "victims: must be a table of nodes"),
        (of_node(None), "victims: those of a node must be an object"),
        (of_node([]), "victims: those of a node must be an object"),
        (of_node({"Pods": "a"}), "victims: Pods must be a list of at most 10000"),
        (of_node({"Pods": [None]}), "victims: a pod has no UID"),
        (of_node({"Pods": [{"UID": 7}]}), "victims: a pod has no UID"),
        (of_node({"Pods": [{"UID": "u" * 254}]}), "victims: a pod has no UID of at most 253"),
        (of_node({"NumPDBViolations": True}), "victims: NumPDBViolations must be a whole number"),
        (of_node({"NumPDBViolations": 1.5}), "victims: NumPDBViolations must be a whole number"),
        (of_node({"NumPDBViolations": 2**63}), "victims: NumPDBViolations must be a whole number"),
        (of_node({"NumPDBViolations": -1}), "victims: NumPDBViolations must be a whole number"),
        (of_node({}, "n" * 254), "victims: a node has no name of at most 253"),
        (of_node({}, ""), "victims: a node has no name of at most 253"),
        (
            of_node({"Pods": [{"UID": "u"}] * (MOST_OF_NODE + 1)}),
            "victims: Pods must be a list of at most 10000",
        ),
        (
            json.dumps(preempting({f"n{number}": [] for number in range(50_001)})).encode(),
            "victims: must be of at most 50000 nodes",
        ),
        (
            json.dumps(
                preempting({f"n{number}": ["u" * 253] * 10_000 for number in range(7)})
            ).encode(),
            f"victims: their UIDs must have at most {MOST_ANSWER} characters",
        ),
    ],
)
def test_what_is_no_question_is_refused_in_one_line(client, body, said):
    answer = client.post("/preempt", content=body)

    assert (answer.status_code, answer.text.count("\n")) == (400, 1)
    assert answer.text.startswith(said)


def test_a_body_that_is_too_large_is_not_read_to_its_end():
    with serving(most_bytes=100_000) as port:
        answer = httpx2.post(f"http://127.0.0.1:{port}/preempt", content=b" " * 100_001)

    assert (answer.status_code, answer.text) == (413, "the body is larger than 100000 bytes\n")
