import asyncio
import base64
import json

import httpx2
import pytest
from structlog.testing import capture_logs

from temper_plugin_density.overcommit import application
from temper_plugin_density.overcommit.admission import admit
from temper_plugin_density.overcommit.application import (
    LARGEST_BYTES,
    observed_app,
    webhook_app,
)
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.policy import Policy
from temper_plugin_density.overcommit.tallies import Tallies
from tests.density.overcommit.objects import (
    POLICY,
    TIERS,
    admission_review,
    container,
    pod,
)


def answer_to(body, by=POLICY):
    answer = admit(body, by)
    review = json.loads(answer.body)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert review["response"]["allowed"] is True
    assert review["response"]["auditAnnotations"]["outcome"] == answer.decision.outcome
    assert review["response"]["auditAnnotations"]["reason"]
    return review["response"]


def test_a_pod_is_allowed_with_a_patch_under_its_own_uid():
    response = answer_to(admission_review(pod()))

    assert (response["uid"], response["patchType"]) == ("u-1", "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"])) == [
        {
            "op": "replace",
            "path": "/spec/containers/0/resources/requests/cpu",
            "value": "700m",
        },
        {
            "op": "add",
            "path": "/metadata/annotations",
            "value": {"temper.codes/original-cpu-requests": '{"app":"1"}'},
        },
    ]


def test_a_uid_that_no_api_server_gives_is_not_repeated():
    response = answer_to(admission_review(pod(), uid="u" * 129))

    assert response["uid"] == ""


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"operation": "UPDATE"}, Outcome.NOT_OURS),
        ({"operation": "CONNECT"}, Outcome.NOT_OURS),
        ({"subResource": "resize"}, Outcome.NOT_OURS),
        ({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}, Outcome.NOT_OURS),
        ({"kind": "Pod"}, Outcome.NOT_OURS),
        ({"namespace": "kube-system"}, Outcome.NOT_OURS),
        ({"object": None}, Outcome.UNREADABLE),
        ({"object": pod(priority="high")}, Outcome.UNREADABLE),
        ({"object": pod(priority=1_000_000)}, Outcome.CRITICAL),
    ],
)
def test_what_is_not_to_be_lowered_is_allowed_without_a_patch(changes, outcome):
    response = answer_to(admission_review(pod(), **changes))

    assert response["uid"] == "u-1"
    assert "patch" not in response
    assert response["auditAnnotations"]["outcome"] == outcome


def test_its_own_namespace_is_spared():
    own = Policy(TIERS, spared_namespaces=frozenset({"temper"}))

    response = answer_to(admission_review(pod(), namespace="temper"), own)

    assert response["auditAnnotations"]["outcome"] == Outcome.NOT_OURS


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"request":1}', b'{"request":{}}'],
)
def test_what_is_no_review_is_allowed_all_the_same(body):
    response = answer_to(body)

    assert response["uid"] == ""
    assert "patch" not in response


def test_a_mistake_of_ours_lets_the_pod_start_and_is_told():
    def mistaken(_):
        raise ZeroDivisionError("nothing")

    with capture_logs() as logs:
        response = answer_to(admission_review(pod()), Policy(mistaken))

    assert response["uid"] == "u-1"
    assert response["auditAnnotations"]["outcome"] == Outcome.FAILED
    assert [entry["event"] for entry in logs] == ["admission_failed"]


@pytest.fixture
def tallies():
    return Tallies()


@pytest.fixture
def ask(tallies):
    """Ask the application that the API server calls."""
    transport = httpx2.ASGITransport(webhook_app(POLICY, tallies))

    async def post(content, path="/mutate"):
        async with httpx2.AsyncClient(transport=transport, base_url="https://webhook") as client:
            return await client.post(path, content=content)

    def now(*asked):
        return asyncio.run(post(*asked))

    return now


def counted(tallies, name, **labels):
    return tallies.registry.get_sample_value(name, labels)


def test_admissions_are_counted_by_outcome_with_what_they_free(ask, tallies):
    ask(admission_review(pod()))
    ask(admission_review(pod(), dryRun=True))
    ask(b"rubbish")

    name = "temper_overcommit_admissions_total"
    assert counted(tallies, name, outcome="lowered") == 2
    assert counted(tallies, name, outcome="unreadable") == 1
    assert counted(tallies, name, outcome="critical") == 0
    assert counted(tallies, "temper_overcommit_freed_millicores_total") == 300
    assert counted(tallies, "temper_overcommit_admission_seconds_count") == 3


@pytest.mark.parametrize("asked", ["1E", "8192k", "9e99"])
def test_a_pod_that_no_node_can_run_frees_nothing(ask, tallies, asked):
    ask(admission_review(pod(container(cpu=asked))))
    ask(admission_review(pod()))

    assert counted(tallies, "temper_overcommit_admissions_total", outcome="lowered") == 2
    assert counted(tallies, "temper_overcommit_freed_millicores_total") == 300


def test_a_request_that_is_too_large_is_not_read_to_its_end(ask, tallies):
    async def endless():
        for _ in range(LARGEST_BYTES // 1_000_000 + 1):
            yield b"x" * 1_000_000
        raise AssertionError("it was read")

    answer = ask(endless())

    assert answer.status_code == 413
    assert answer.json()["response"]["allowed"] is True
    assert counted(tallies, "temper_overcommit_admissions_total", outcome="too_large") == 1


MANY = 40_000
BOMBS = {
    "containers": {"containers": [{}] * MANY},
    "no containers": {"containers": [1] * MANY},
    "init containers": {"initContainers": [{"name": "a"}] * 2000, "containers": [{"name": "b"}]},
}


@pytest.mark.parametrize("spec", BOMBS.values(), ids=BOMBS)
def test_more_containers_than_any_pod_has_are_not_looked_at(spec):
    response = answer_to(admission_review({"metadata": {}, "spec": spec}))

    assert response["auditAnnotations"]["outcome"] == Outcome.UNREADABLE
    assert "must be at most 1000" in response["auditAnnotations"]["reason"]


@pytest.mark.parametrize(
    "many",
    [
        b"[" + b"{}," * 200_000 + b"{}]",
        b"[" + b"1," * 200_000 + b"1]",
        b"{" + b",".join(b'"%d":1' % number for number in range(200_000)) + b"}",
    ],
    ids=["objects", "numbers", "keys"],
)
def test_a_request_of_very_many_values_is_not_parsed(many):
    body = admission_review(pod()).replace(b"{}", many, 1)

    response = answer_to(body)

    assert response["uid"] == ""
    assert "more than 100000 values" in response["auditAnnotations"]["reason"]


def test_a_namespace_that_is_no_text_is_none_of_those_that_are_spared():
    response = answer_to(admission_review(pod(), namespace=["kube-system"]))

    assert response["auditAnnotations"]["outcome"] == Outcome.LOWERED


def test_the_largest_request_is_read(ask):
    filled = admission_review(pod(annotations={"a": ""}))
    padding = b"x" * (LARGEST_BYTES - len(filled))

    answer = ask(filled.replace(b'"a": ""', b'"a": "' + padding + b'"'))

    assert answer.status_code == 200
    assert answer.json()["response"]["auditAnnotations"]["outcome"] == Outcome.NO_ROOM


def test_a_request_that_does_not_come_to_its_end_is_given_up(tallies):
    transport = httpx2.ASGITransport(webhook_app(POLICY, tallies, body_s=0.05))

    async def slow():
        yield b"{"
        await asyncio.sleep(600)

    async def post():
        async with httpx2.AsyncClient(transport=transport, base_url="https://webhook") as client:
            return await client.post("/mutate", content=slow())

    assert asyncio.run(post()).status_code == 408
    assert counted(tallies, "temper_overcommit_admissions_total", outcome="refused") == 1


def ask_at_once(tallies, count):
    """Return the status of each of *count* requests from one address."""
    transport = httpx2.ASGITransport(webhook_app(POLICY, tallies))

    async def burst():
        async with httpx2.AsyncClient(transport=transport, base_url="https://webhook") as client:
            asked = (client.post("/mutate", content=admission_review(pod())) for _ in range(count))
            return await asyncio.gather(*asked)

    return [answer.status_code for answer in asyncio.run(burst())]


def test_all_that_one_api_server_asks_at_once_is_answered(tallies):
    assert ask_at_once(tallies, 100) == [200] * 100
    assert counted(tallies, "temper_overcommit_admissions_total", outcome="lowered") == 100


def test_each_request_beyond_those_that_may_wait_is_counted(tallies, monkeypatch):
    monkeypatch.setattr(application, "MOST_WAITING", 2)
    refused = ask_at_once(tallies, 50).count(503)

    assert refused
    name = "temper_overcommit_admissions_total"
    assert counted(tallies, name, outcome="refused") == refused
    assert counted(tallies, name, outcome="lowered") == 50 - refused


def test_there_is_nothing_else_to_ask(ask):
    assert ask(b"", "/").status_code == 404


def observed(why, tallies, path):
    transport = httpx2.ASGITransport(observed_app(lambda: why, tallies))

    async def get():
        async with httpx2.AsyncClient(transport=transport, base_url="http://webhook") as client:
            return await client.get(path)

    return asyncio.run(get())


def test_readiness_says_what_is_missing_and_health_does_not_mind(tallies):
    assert observed("no certificate yet", tallies, "/readyz").status_code == 503
    assert observed("no certificate yet", tallies, "/readyz").text == "no certificate yet\n"
    assert observed("no certificate yet", tallies, "/healthz").status_code == 200
    assert observed("", tallies, "/readyz").status_code == 200


def test_every_outcome_is_a_series_from_the_start(tallies):
    page = observed("", tallies, "/metrics").text

    for outcome in Outcome:
        assert f'temper_overcommit_admissions_total{{outcome="{outcome}"}} 0.0' in page
