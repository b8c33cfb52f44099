"""The fleet server as a client sees it: who may read what, and nodes that cannot be asked.

The API server is made, for answers that a real one gives rarely. tests/kubernetes/fleet has the
real one.
"""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from temper_kube.access import Access
from temper_kube.agents import Agent, Roster
from temper_plugin_dashboard.fleet import application, survey
from temper_plugin_dashboard.fleet.asking import AgentDoor
from temper_plugin_dashboard.fleet.node_pages import FORWARDED
from temper_plugin_dashboard.fleet.node_summary import summarize
from tests.dashboard.fleet.made_fleet import (
    NODES,
    OBSERVED,
    OWN,
    PODS,
    TOKEN,
    another_round,
    log_in,
    nodes_of,
    proxied,
    until,
    until_node,
)
from tests.kube_client.made_server import DROP, agent, listed


@pytest.mark.parametrize(
    "path",
    [
        "/fleet/nodes",
        "/fleet/pods",
        "/fleet/history?node=n1",
        "/fleet/rounds",
        "/node/n1/observe",
        "/node/n1/dashboard/settings",
        "/node/n1/dashboard/snapshots",
    ],
)
def test_nothing_is_read_without_a_session(client, made, path):
    refused = client.get(path)

    assert refused.status_code == 401
    assert "session" in refused.json()["error"]
    assert made.asked == []


@pytest.mark.parametrize("half", ["cookie", "key"])
@pytest.mark.parametrize("path", ["/fleet/nodes", "/fleet/rounds", "/node/n1/observe", "/logout"])
def test_half_of_a_session_reads_nothing_and_ends_nothing(entered, path, half):
    """Another server of the same host name is sent the cookie, whatever its port."""
    cookie, key = dict(entered.cookies), entered.headers.pop("temper-session")
    if half == "key":
        entered.cookies.clear()
        entered.headers["temper-session"] = key
    thief = entered.request("POST" if path == "/logout" else "GET", path)
    entered.cookies.update(cookie)
    entered.headers["temper-session"] = key

    assert thief.status_code == (200 if path == "/logout" else 401)
    assert entered.get("/fleet/nodes").status_code == 200


def test_servers_at_two_ports_of_a_host_have_a_cookie_each(client):
    names = [
        next(iter(log_in(client, host=host, origin=f"http://{host}").cookies))
        for host in ("localhost:8090", "localhost:8091", "temper.example")
    ]

    assert names == ["temper_session_8090", "temper_session_8091", "temper_session"]


@pytest.mark.parametrize("path", ["/", "/node/n1/"])
def test_a_page_is_the_login_until_a_session_is_open(client, path):
    before = client.get(path).text
    log_in(client)

    assert 'id="login"' in before
    assert 'id="app"' in client.get(path).text


@pytest.mark.parametrize("order", [1, -1])
def test_a_session_is_found_beside_a_cookie_of_another_server(entered, order):
    ((name, value),) = entered.cookies.items()
    entered.cookies.clear()
    cookies = [f"{name}=foreign", f"{name}={value}"][::order]

    assert entered.get("/fleet/nodes", headers={"cookie": "; ".join(cookies)}).status_code == 200


def test_the_cookie_has_the_path_of_its_login_and_logout(client):
    """Pages of two clusters may be below prefixes of one proxy, which their servers do not know."""
    begun = log_in(client).headers["set-cookie"].lower()
    over = client.post("/logout").headers["set-cookie"].lower()

    assert "path=" not in begun + over
    assert "max-age=0" in over


@pytest.mark.parametrize("path", ["/?login", "/node/n1/?login"])
def test_the_login_is_shown_to_a_page_that_asks_for_it(entered, path):
    """No server can delete each cookie of its name that a browser may send."""
    assert 'id="login"' in entered.get(path).text


def test_wrong_tokens_in_a_row_are_one_line_of_the_log(client):
    with capture_logs() as lines:
        codes = {client.post("/login", json={"token": "x" * 16}).status_code for _ in range(20)}

    assert codes == {403}
    assert [line["event"] for line in lines].count("login_refused") == 1


@pytest.mark.parametrize("path", ["/", "/login", "/fleet/nodes", "/nowhere", "/healthz"])
def test_every_answer_keeps_other_sites_out(client, path):
    headers = client.get(path).headers

    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_the_cookie_is_for_this_site_alone(client):
    plain = log_in(client).headers["set-cookie"].lower()
    behind_tls = log_in(client, **{"x-forwarded-proto": "https"}).headers["set-cookie"]

    assert "httponly" in plain
    assert "samesite=strict" in plain
    assert "secure" not in plain
    assert "secure" in behind_tls.lower()


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"origin": "http://["},
    ],
)
@pytest.mark.parametrize("path", ["/login", "/logout"])
def test_a_page_of_another_origin_neither_enters_nor_leaves(entered, path, headers):
    refused = entered.post(path, json={"token": TOKEN}, headers=headers)

    assert refused.status_code == 400
    assert "set-cookie" not in refused.headers
    assert entered.get("/fleet/nodes").status_code == 200


def test_only_the_end_of_an_open_session_is_logged(entered):
    with capture_logs() as logs:
        for _ in range(3):
            assert entered.post("/logout").status_code == 200

    assert [entry["event"] for entry in logs] == ["session_ended"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"token": 5}', 400),
        (b'{"token": "wrong"}', 403),
        (b"x" * 10_000, 413),
    ],
)
def test_a_login_without_the_token_is_refused_in_one_line(client, body, status):
    refused = client.post("/login", content=body, headers={"content-type": "application/json"})

    assert refused.status_code == status
    assert refused.text.strip().count("\n") == 0
    assert client.get("/fleet/nodes").status_code == 401


@pytest.mark.parametrize("name", ["n1", "https:evil.example", "javascript:alert(1)"])
def test_no_name_of_a_node_leads_to_another_site(client, name):
    led = client.get(f"/node/{name}", follow_redirects=False)

    assert (led.status_code, led.headers["location"]) == (308, f"./{name}/")


def test_a_form_of_another_site_cannot_enter(client):
    body = json.dumps({"token": TOKEN})
    forms = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")

    answers = [
        client.post("/login", content=body, headers={"content-type": form}) for form in forms
    ]

    assert {each.status_code for each in answers} == {400}
    assert client.get("/fleet/nodes").status_code == 401


def test_nodes_are_told_with_what_their_agents_answer(entered):
    found = nodes_of(entered)

    assert set(found) == {"n1", "n2"}
    assert (found["n1"]["state"], found["n1"]["why"]) == ("answers", "")
    seen = found["n1"]["seen"]
    assert (seen["mode"], seen["cpus"], seen["pods"], seen["violations"]) == ("enforcing", 8, 2, 1)
    assert (seen["pods_cpu"], seen["background_cpu"]) == (3.75, 2.25)


def test_a_node_without_an_agent_and_one_that_is_not_ready_are_away(entered, made):
    waiting = agent("n2")
    began = "2026-11-28T04:00:00Z"
    waiting["status"]["conditions"][0].update(status="False", lastTransitionTime=began)
    made.answers[PODS] = listed(waiting)

    without = until_node(entered, "n1", lambda each: each["state"] == "away")
    not_ready = until_node(entered, "n2", lambda each: each["state"] == "away")

    assert without["why"] == "no agent runs there"
    assert not_ready["why"] == "its agent temper-agent-n2 is not ready"
    assert not_ready["since"] == 1795838400.0


@pytest.mark.parametrize("answer", [DROP, (503, {"error": "gone"}), (200, []), (200, 5)])
def test_an_agent_that_stops_answering_is_away_since_then_with_its_last_answer(
    entered, made, answer
):
    before = until_node(entered, "n1", lambda each: each["state"] == "answers")
    made.answers[proxied("n1")] = answer

    away = until_node(entered, "n1", lambda each: each["state"] == "away")
    another_round(entered)
    later = until_node(entered, "n1", lambda each: each["state"] == "away")

    assert away["why"].startswith("its agent temper-agent-n1 does not answer: ")
    assert away["since"] >= before["answered_at"]
    assert later["since"] == away["since"]
    assert away["seen"]["mode"] == "enforcing"
    assert nodes_of(entered)["n2"]["state"] == "answers"
    pods = entered.get("/fleet/pods?node=n1").json()["pods"]
    assert [pod["is_old"] for pod in pods] == [True, True]
    made.answers[proxied("n1")] = (200, OBSERVED, OWN)
    assert until_node(entered, "n1", lambda each: each["state"] == "answers")["why"] == ""


def _no_json(constant):
    raise ValueError(f"a browser cannot read {constant}")


def test_an_agent_with_sums_beyond_all_numbers_leaves_the_page_of_all_nodes_readable(entered, made):
    pods = [{"pod": "a", "cpu_used": 1.7e308}, {"pod": "b", "cpu_used": 1.7e308}]
    made.answers[proxied("n1")] = (200, {**OBSERVED, "pods": pods}, OWN)

    def is_summed(each):
        return each["seen"] and each["seen"]["pods_cpu"] == 0.0

    until_node(entered, "n1", is_summed)
    text = entered.get("/fleet/nodes").text

    assert json.loads(text, parse_constant=_no_json)["nodes"]


def test_an_agent_with_an_observation_beyond_its_bound_is_away(entered, made, monkeypatch):
    made.answers[proxied("n1")] = (200, {**OBSERVED, "reason": "x" * 5_000}, OWN)
    until_node(entered, "n1", lambda each: each["seen"] and each["seen"]["reason"])
    monkeypatch.setattr(survey, "LARGEST_OBSERVATION", 4_000)

    away = until_node(entered, "n1", lambda each: each["state"] == "away")

    assert "an answer is larger than 4000 bytes" in away["why"]
    assert nodes_of(entered)["n2"]["state"] == "answers"


@pytest.fixture
def trickling():
    """An agent whose observation never ends: a blank every few milliseconds."""
    ends = threading.Event()

    def answer(sent):
        with sent, suppress(OSError):
            sent.recv(4096)
            sent.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while not ends.wait(0.02):
                sent.sendall(b" ")

    def serve():
        with suppress(OSError):
            while True:
                sent, _ = listening.accept()
                threading.Thread(target=answer, args=(sent,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        ends.set()
        listening.shutdown(socket.SHUT_RDWR)


def test_an_agent_that_trickles_delays_a_round_no_longer_than_one_that_hangs(
    trickling, monkeypatch
):
    monkeypatch.setattr(survey, "ANSWER_S", 0.3)
    door = AgentDoor(Access("127.0.0.1", trickling, is_tls=False))
    rounds = survey.Survey(door, "temper")
    lost = Agent("n1", "temper", "a", 9100)
    monkeypatch.setattr(survey, "roster", lambda *_: Roster((lost,)))
    began = time.monotonic()

    rounds.take()

    rounds.close()
    assert time.monotonic() - began < 5
    assert "not complete after 0.3 s" in rounds.nodes["n1"].why


def test_a_page_of_a_node_whose_agent_does_not_answer_keeps_no_other_page(entered, made):
    released = threading.Event()
    made.answers[proxied("n1", "plan")] = lambda _: released.wait(20) and {}
    made.answers[proxied("n2", "plan")] = {"of": "n2"}
    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(entered.get, "/node/n1/plan") for _ in range(32)]
        until(lambda: any(path == proxied("n1", "plan") for _, path, _ in made.asked))
        later = [
            pool.submit(entered.get, path)
            for path in ("/fleet/pods?find=web", "/node/n2/plan", "/fleet/nodes")
        ]
        _, late = wait(later, timeout=3)
        released.set()

    assert not late
    assert later[1].result().json() == {"of": "n2"}
    assert {each.result().status_code for each in waiting} == {200}


def test_observations_are_parsed_one_at_a_time(entered, monkeypatch):
    parsing, most = [], []

    def slowly(document):
        parsing.append(document)
        most.append(len(parsing))
        time.sleep(0.05)
        parsing.pop()
        return summarize(document)

    monkeypatch.setattr(survey, "summarize", slowly)
    another_round(entered)

    assert max(most) == 1


def test_a_search_keeps_no_probe_waiting(entered, monkeypatch):
    began, released = threading.Event(), threading.Event()

    def search(*_):
        began.set()
        return {"was_released": released.wait(20)}

    monkeypatch.setattr(application, "find_pods", search)
    with ThreadPoolExecutor(2) as pool:
        searching = pool.submit(entered.get, "/fleet/pods?find=web")
        assert began.wait(10)
        probe = pool.submit(entered.get, "/healthz")
        _, late = wait([probe], timeout=5)
        released.set()

    assert not late
    assert searching.result().json() == {"was_released": True}


def test_words_without_end_are_refused(entered):
    assert entered.get("/fleet/pods", params={"find": "a " * 100}).status_code == 200

    refused = entered.get("/fleet/pods", params={"find": "a " * 101})

    assert (refused.status_code, refused.json()) == (
        400,
        {"error": "find must have at most 200 characters"},
    )


def test_an_agent_of_another_version_is_shown_as_far_as_it_can_be_read(entered, made):
    other = {"mode": "new mode", "pods": [{"pod": 5}], "machine": None}
    made.answers[proxied("n1")] = (200, other, {"server": "temper/9.9"})

    found = until_node(entered, "n1", lambda each: each["state"] == "other version")

    assert found["version"] == "9.9"
    assert "9.9" in found["why"]
    assert (found["seen"]["mode"], found["seen"]["cpus"]) == ("new mode", None)


def test_a_slow_agent_is_called_slow(entered, monkeypatch):
    monkeypatch.setattr(survey, "SLOW_S", 0.0)

    found = until_node(entered, "n1", lambda each: each["state"] == "slow")

    assert found["why"].startswith("its last answer took")
    assert found["seen"]["mode"] == "enforcing"


def test_agents_that_cannot_be_listed_are_a_problem_and_what_was_known_stays(entered, made):
    nodes_of(entered)
    made.answers[PODS] = (403, {"message": 'User "x" cannot list resource "pods" in API group ""'})

    for _ in range(500):
        document = entered.get("/fleet/nodes").json()
        if document["problem"]:
            break

    assert "lacks the right to list pods" in document["problem"]
    assert {each["node"] for each in document["nodes"]} == {"n1", "n2"}


def test_without_the_right_to_list_nodes_a_note_says_what_is_not_known(entered, made):
    made.answers[NODES] = (
        403,
        {"message": 'User "x" cannot list resource "nodes" in API group ""'},
    )

    for _ in range(500):
        document = entered.get("/fleet/nodes").json()
        if document["notes"]:
            break

    assert document["notes"][0].startswith("nodes without an agent are not known: ")


def test_what_an_agent_answers_is_passed_on_as_data_only(entered, made):
    script = {"content-type": "text/html", "set-cookie": "a=b", "x-evil": "1"}
    made.answers[proxied("n1", "config")] = (200, ["<script>"], script)

    answer = entered.get("/node/n1/config")

    assert answer.json() == ["<script>"]
    assert answer.headers["content-type"].startswith("text/plain")
    assert "set-cookie" not in answer.headers
    assert "x-evil" not in answer.headers


@pytest.mark.parametrize("status", [302, 304, 600, 999])
def test_a_status_that_is_of_no_error_is_not_passed_on(entered, made, status):
    made.answers[proxied("n1", "plan")] = (status, {"error": "moved"})

    assert entered.get("/node/n1/plan", follow_redirects=False).status_code == 502


def test_a_refusal_of_an_agent_keeps_status_and_reason(entered, made):
    made.answers[proxied("n1", "rightsize")] = (404, {"error": "no such endpoint"})

    answer = entered.get("/node/n1/rightsize?hours=6")

    assert (answer.status_code, answer.json()) == (404, {"error": "no such endpoint"})
    assert ("GET", proxied("n1", "rightsize"), {"hours": "6"}) in made.asked


@pytest.mark.parametrize(
    "path",
    [
        "metrics",
        "trace/1",
        "recording",
        "flight-recorder",
        "events/stream",
        "observe/../trace/1",
        "dashboard/files/../../options.py",
        "%2e%2e/observe",
        "observe%2f",
        "//observe",
    ],
)
def test_only_what_the_page_reads_is_passed_on(entered, made, path):
    nodes_of(entered)
    asked = len([each for each in made.asked if "/proxy/" in each[1] and "observe" not in each[1]])

    answer = entered.get(f"/node/n1/{path}")

    after = len([each for each in made.asked if "/proxy/" in each[1] and "observe" not in each[1]])
    assert answer.status_code == 404
    assert after == asked


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "PATCH"])
@pytest.mark.parametrize("path", sorted(FORWARDED))
def test_nothing_can_be_changed(entered, made, method, path):
    assert entered.request(method, f"/node/n1/{path}", json={}).status_code == 405
    assert {each[0] for each in made.asked} <= {"GET"}


def test_a_node_that_is_not_there_is_named(entered):
    answer = entered.get("/node/n9/observe")

    assert (answer.status_code, answer.json()["error"]) == (404, "the cluster has no node n9")


def test_pods_are_found_by_all_words_busiest_first(entered):
    every = entered.get("/fleet/pods").json()
    some = entered.get("/fleet/pods?find=WEB n2").json()
    none = entered.get("/fleet/pods?find=web low").json()

    assert [pod["pod"] for pod in every["pods"]] == ["batch", "batch", "web", "web"]
    assert [(pod["pod"], pod["node"]) for pod in some["pods"]] == [("web", "n2")]
    assert none["total"] == 0


@pytest.mark.parametrize("hours", ["0", "337", "-1", "x", "1.5", "9" * 40])
def test_hours_out_of_range_are_refused_with_what_is_allowed(entered, hours):
    answer = entered.get("/fleet/history", params={"node": "n1", "hours": hours})

    assert answer.status_code == 400
    assert "a whole number from 1 to 336" in answer.json()["error"]


def test_without_a_prometheus_the_history_says_so(entered):
    answer = entered.get("/fleet/history?node=n1")

    assert answer.status_code == 404
    assert "--prometheus" in answer.json()["error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(OBSERVED)), JSON))
def test_whatever_an_agent_answers_can_be_summarized_and_sent(document):
    json.dumps(summarize(document).document())
