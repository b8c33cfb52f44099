"""The extender and bodies that no scheduler sends."""

import json
from contextlib import suppress

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core import InputError
from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.parts import OTHER, parts_at_once, parts_piecewise
from temper_plugin_power.extender.pieces import CHUNK_BYTES, MOST_PIECE
from temper_plugin_power.extender.reading import profile_of_object, twin_of_object
from tests.power.extender.serving import CLASS, a_pod, a_profile, a_twin, serving

KEYS = (
    *("Pod", "pod", "Nodes", "NODES", "NodeNames", "nodenames", "items", "Items", "metadata"),
    *("spec", "name", "namespace", "labels", "annotations", CLASS, "ownerReferences", "kind"),
    *("controller", "containers", "initContainers", "resources", "requests", "limits", "cpu"),
    *("memory", "nvidia.com/gpu", "joulie.io/power-profile", "pod-template-hash"),
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["performance", "eco", "n1", "1", "\ud800", "1e999", "web"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=20,
)


def pods():
    """Pods whose fields are of any type."""
    spoilt = st.sampled_from(["metadata", "spec", "annotations", "labels", "ownerReferences", None])
    return st.builds(_spoil, spoilt, JSON)


def _spoil(field, value):
    pod = a_pod("performance")
    for table in (pod, pod["metadata"]):
        if field in table:
            table[field] = value
    return pod


UIDS = st.text(min_size=1, max_size=5)


def victims(key, value):
    """Tables of victims, most of them sound."""
    pods = st.lists(st.fixed_dictionaries({key: value}), max_size=3)
    entry = st.fixed_dictionaries({"Pods": pods, "NumPDBViolations": st.integers(0, 3) | LEAVES})
    return st.dictionaries(st.sampled_from(["n1", "n2", "\ud800"]), entry, max_size=3)


QUESTIONS = st.fixed_dictionaries(
    {"Pod": pods() | JSON},
    optional={
        "NodeNames": st.lists(st.sampled_from(["n1", "n2", "\ud800", ""]), max_size=3) | JSON,
        "nodes": st.fixed_dictionaries(
            {"items": st.lists(st.fixed_dictionaries({"metadata": JSON}), max_size=2) | JSON}
        ),
        "NodeNameToVictims": victims("metadata", st.fixed_dictionaries({"uid": UIDS})) | JSON,
        "nodenametometavictims": victims("UID", UIDS) | JSON,
    },
)


@pytest.fixture(scope="module")
def client():
    cluster = Cluster()
    cluster.put_twin(*twin_of_object(a_twin("n1", "eco")))
    cluster.put_profile(*profile_of_object(a_profile()))
    with (
        serving(cluster) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        yield client


@given(QUESTIONS | JSON)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_json_is_filtered_or_refused(client, document):
    answer = client.post("/filter", content=json.dumps(document).encode())

    if answer.status_code == 200:
        reply = answer.json()
        assert set(reply) <= {"nodes", "nodenames", "failedAndUnresolvableNodes"}
        assert ("nodes" in reply) != ("nodenames" in reply)
        assert reply.get("nodenames") is not None or reply["nodes"]["items"] is not None
    else:
        assert (answer.status_code, answer.text.count("\n")) == (400, 1)


@given(QUESTIONS | JSON)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_victims_are_answered_or_refused(client, document):
    """No answer has null for victims, on which a scheduler fails."""
    answer = client.post("/preempt", content=json.dumps(document).encode())

    if answer.status_code == 200:
        ((key, entries),) = answer.json().items()
        assert key == "NodeNameToMetaVictims"
        for entry in entries.values():
            assert all(isinstance(pod["UID"], str) for pod in entry["Pods"])
            assert type(entry["NumPDBViolations"]) is int
    else:
        assert (answer.status_code, answer.text.count("\n")) == (400, 1)


@given(QUESTIONS | JSON)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_json_is_scored_or_refused(client, document):
    answer = client.post("/prioritize", content=json.dumps(document).encode())

    if answer.status_code == 200:
        assert all(type(each["score"]) is int for each in answer.json())
        assert all(0 <= each["score"] <= 100 for each in answer.json())
    else:
        assert (answer.status_code, answer.text.count("\n")) == (400, 1)


@given(st.binary(max_size=60))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_are_answered_or_refused(client, body):
    for path in ("/filter", "/preempt", "/prioritize"):
        assert client.post(path, content=body).status_code in (200, 400)


def taken(parts, body):
    """Return the parts of a body that are not left out, or that it is refused."""
    with suppress(InputError):
        return [part for part in parts(body) if part[0] != OTHER]
    return "refused"


@given(QUESTIONS | JSON)
@settings(max_examples=300)
def test_a_body_has_the_same_parts_at_once_and_piece_by_piece(document):
    body = json.dumps(document, ensure_ascii=False).encode(errors="surrogatepass")
    at_once, piecewise = taken(parts_at_once, body), taken(parts_piecewise, body)

    # NaN is no number that equals itself.
    assert repr(at_once) == repr(piecewise)


@given(st.text(alphabet='{}[]:,"a1 \n\\u', max_size=40))
def test_text_that_is_no_json_is_refused_piece_by_piece(text):
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False

    assert (taken(parts_piecewise, text.encode()) != "refused") or not is_object
    if not is_object:
        assert taken(parts_piecewise, text.encode()) == "refused"


@pytest.mark.parametrize("size", [CHUNK_BYTES - 40, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_a_value_at_the_end_of_a_chunk_is_whole(size):
    """Spaces put a name, a number and a sign of several bytes across the ends of chunks."""
    body = b'{"Pod":1,' + b" " * (size - 30) + '"NodeNames":["é\U0001f600é",1234567]}'.encode()

    assert list(parts_piecewise(body)) == [("pod", 1), ("nodenames", ["é\U0001f600é", 1234567])]


@pytest.mark.parametrize(("length", "is_taken"), [(MOST_PIECE - 2, True), (3 * MOST_PIECE, False)])
def test_a_value_is_bounded(length, is_taken):
    body = b'{"Pod":"' + b"x" * length + b'"}'

    assert (taken(parts_piecewise, body) != "refused") is is_taken


def test_a_pod_that_is_nested_deeply_is_refused_piece_by_piece():
    assert taken(parts_piecewise, b'{"Pod":' + b"[" * 100_000 + b"}") == "refused"
