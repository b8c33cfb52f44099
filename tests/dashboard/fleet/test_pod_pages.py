"""What the page of a cluster answers of a pod, where the API server is made.

tests/kubernetes/fleet has the real one.
"""

import pytest
from starlette.testclient import TestClient

from temper_kube.access import Access
from temper_plugin_dashboard.fleet.application import FleetServer
from temper_plugin_dashboard.fleet.asking import AgentDoor
from temper_plugin_dashboard.fleet.pod_details import LONGEST_MESSAGE, LONGEST_WORD, MOST_EVENTS
from temper_plugin_dashboard.fleet.sessions import Sessions, TokenFile
from tests.dashboard.fleet.made_fleet import TOKEN, log_in
from tests.kube_client.made_server import MadeServer, listed

POD = "/api/v1/namespaces/shop/pods/web"
ASKED = "namespace=shop&pod=web"
PARTS = ("events", "manifest", "revisions", "logs")


@pytest.fixture
def made():
    server = MadeServer()
    yield server
    server.close()


@pytest.fixture
def client_of(made, tmp_path):
    """Return a function that makes a client, with a session, of a server with some parts."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    host, _, port = made.url.removeprefix("http://").partition(":")

    def make(*parts):
        door = AgentDoor(Access(host, int(port), is_tls=False))
        server = FleetServer(door, Sessions(TokenFile(token)), "temper", pod_parts=parts)
        client = TestClient(server.application())
        log_in(client)
        return client

    return make


@pytest.mark.parametrize("part", PARTS)
def test_nothing_of_a_pod_is_read_without_a_session(client_of, made, part):
    client = client_of(*PARTS)
    client.cookies.clear()

    assert client.get(f"/fleet/pod/{part}?{ASKED}").status_code == 401
    assert made.asked == []


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_the_operator_did_not_choose_is_not_read(client_of, made, part):
    client = client_of(*(set(PARTS) - {part}))

    refused = client.get(f"/fleet/pod/{part}?{ASKED}")

    assert refused.status_code == 400
    assert "dashboard.podDetails" in refused.json()["error"]
    assert made.asked == []
    assert part not in client.get("/node/n1/dashboard/settings").json()["pod_details"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "namespace=shop",
        "namespace=..&pod=web",
        "namespace=shop&pod=a%2F..%2F..%2Fsecrets%2Fs",
        "namespace=shop&pod=web%3Fwatch=true",
        "namespace=SHOP&pod=web",
        "namespace=shop&pod=web&container=a%26follow=true",
        f"namespace=shop&pod={'a' * 300}",
    ],
)
def test_a_name_that_no_pod_has_is_refused(client_of, made, query):
    refused = client_of(*PARTS).get(f"/fleet/pod/logs?{query}")

    assert refused.status_code == 400
    assert "must be the name" in refused.json()["error"]
    assert made.asked == []


def test_the_newest_events_come_first_and_no_more_than_a_page_of_them(client_of, made):
    events = [
        {
            "metadata": {"name": f"e{number}", "uid": str(number), "creationTimestamp": ""},
            "lastTimestamp": f"2026-11-28T04:{number // 60:02}:{number % 60:02}Z",
            "count": number,
        }
        for number in range(300)
    ]
    made.answers["/api/v1/namespaces/shop/events"] = listed(*events)

    found = client_of("events").get(f"/fleet/pod/events?{ASKED}").json()

    assert [each["count"] for each in found["events"]] == [*range(299, 299 - MOST_EVENTS, -1)]
    assert found["total"] == 300
    (asked,) = (query for _, _, query in made.asked)
    assert asked["fieldSelector"] == "involvedObject.kind=Pod,involvedObject.name=web"


def test_a_missing_right_is_named_with_the_value_that_grants_it(client_of, made):
    message = (
        'events is forbidden: User "a" cannot list resource "events" in API group "" '
        'in the namespace "shop"'
    )
    made.answers["/api/v1/namespaces/shop/events"] = (403, {"kind": "Status", "message": message})

    refused = client_of("events").get(f"/fleet/pod/events?{ASKED}")

    assert refused.status_code == 403
    assert "list events in the namespace shop" in refused.json()["error"]
    assert "dashboard.podDetails" in refused.json()["error"]


@pytest.mark.parametrize("part", ["manifest", "revisions", "logs"])
def test_a_pod_that_is_gone_is_not_found(client_of, part):
    assert client_of(*PARTS).get(f"/fleet/pod/{part}?{ASKED}").status_code == 404


@pytest.mark.parametrize(
    ("owners", "note"),
    [
        ([], "no controller"),
        ([{"controller": True, "kind": "Job", "name": "j", "uid": "1"}], "Pods of a Job"),
    ],
)
def test_a_pod_without_revisions_says_why(client_of, made, owners, note):
    about = {"namespace": "shop", "name": "web", "ownerReferences": owners}
    made.answers[POD] = {"metadata": about}

    found = client_of("revisions").get(f"/fleet/pod/revisions?{ASKED}").json()

    assert note in found["note"]
    assert found["revisions"] == []


def test_data_that_is_nested_too_deeply_is_an_error_and_no_more(client_of, made):
    deep = {}
    for _ in range(600):
        deep = {"a": deep}
    owner = {"controller": True, "kind": "DaemonSet", "name": "d", "uid": "1"}
    about = {"name": "d-1", "uid": "2", "creationTimestamp": "", "ownerReferences": [owner]}
    revisions = [
        {"metadata": about, "revision": 1, "data": {"spec": {"template": {}}}},
        {
            "metadata": {**about, "uid": "3"},
            "revision": 2,
            "data": {"spec": {"template": deep}},
        },
    ]
    made.answers[POD] = {
        "metadata": {"namespace": "shop", "name": "web", "ownerReferences": [owner]}
    }
    made.answers["/apis/apps/v1/namespaces/shop/controllerrevisions"] = listed(*revisions)

    refused = client_of("revisions").get(f"/fleet/pod/revisions?{ASKED}")

    assert refused.status_code == 503


def test_the_texts_of_an_event_have_a_bound(client_of, made):
    """The API server bounds no message of a core/v1 Event but by the size of the object."""
    long = "é" * 700_000
    event = {
        "metadata": {"name": "e", "uid": "1", "creationTimestamp": "2026-11-28T04:00:00Z"},
        "message": long,
        "reason": long,
        "type": long,
        "reportingComponent": long,
    }
    made.answers["/api/v1/namespaces/shop/events"] = listed(event)

    (found,) = client_of("events").get(f"/fleet/pod/events?{ASKED}").json()["events"]

    assert len(found["message"]) == LONGEST_MESSAGE
    assert {len(found[key]) for key in ("reason", "type", "from")} == {LONGEST_WORD}


def replica_set(number, env, owner, **about):
    return {
        "metadata": {
            "name": f"web-{number}",
            "uid": f"rs-{number}",
            "creationTimestamp": "",
            "annotations": {"deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [owner],
            **about,
        },
        "spec": {"template": {"spec": {"containers": [{"name": "app", "env": env}]}}},
    }


def test_templates_of_any_size_take_bounded_memory(client_of, made):
    owner = {"controller": True, "kind": "Deployment", "name": "web", "uid": "d"}
    own = {"controller": True, "kind": "ReplicaSet", "name": "web-9", "uid": "rs-9"}
    made.answers[POD] = {"metadata": {"namespace": "shop", "name": "web", "ownerReferences": [own]}}
    large = [{"name": "A"}] * 20_000
    sets = [
        replica_set(7, [], owner),
        replica_set(8, [{"name": "A"}], owner),
        replica_set(9, large, owner),
        replica_set("9" * 5000, large, {**owner, "uid": "another"}),
    ]
    made.answers["/apis/apps/v1/namespaces/shop/replicasets"] = listed(*sets)

    found = client_of("revisions").get(f"/fleet/pod/revisions?{ASKED}").json()["revisions"]

    assert [(each["number"], each["is_large"]) for each in found] == [
        (9, True),
        (8, False),
        (7, False),
    ]
    assert "spec.containers[app].env[A].name" in {row["path"] for row in found[1]["changes"]}
    assert found[2]["changes"] is None
