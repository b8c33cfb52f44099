import os

import pytest
from structlog.testing import capture_logs

from temper_core.errors import InputError
from temper_core.records.endpoints import Endpoint
from temper_core.server.table import MOST_OF_PLUGIN
from temper_core.testing import make_pod


def endpoint(path, answer=lambda _: {"fine": True}, **options):
    return Endpoint(**{"name": "mine", "method": "GET", "path": path, "summary": "Mine."} | options,
                    answer=answer)  # fmt: skip


def test_a_plugins_endpoint_answers_with_the_snapshot_it_is_given(start, view):
    view.served = [("linter", endpoint("/violations", lambda asked: {"node": asked.snapshot.node}))]

    assert start().tcp.get("/violations").json() == {"node": "node-a"}


def test_a_path_parameter_comes_with_the_query(start, view):
    echo = endpoint("/trace/{id}", lambda asked: dict(asked.query), parameters={"part": "Which."})
    view.served = [("tracer", echo)]

    assert start().tcp.get("/trace/7?part=a").json() == {"id": "7", "part": "a"}


def test_what_a_plugin_refuses_is_a_bad_request_and_no_failure_of_the_plugin(start, view):
    def refuse(_):
        raise InputError("window: must be positive")

    view.served = [("linter", endpoint("/violations", refuse))]

    response = start().tcp.get("/violations")

    assert response.status_code == 400
    assert response.json() == {"error": "window: must be positive"}
    assert view.failed == []


def test_a_plugin_that_fails_is_named_and_costs_only_its_own_endpoint(start, view):
    broken = endpoint("/broken", lambda _: 1 / 0)
    view.served = [("broken", broken), ("fine", endpoint("/fine", name="b"))]
    agent = start()

    response = agent.tcp.get("/broken")

    assert response.status_code == 503
    assert "plugin 'broken'" in response.json()["error"]
    assert view.failed == [("broken", f"endpoint {broken.name}")]
    assert agent.tcp.get("/fine").json() == {"fine": True}


def test_an_answer_that_is_too_large_is_no_failure_of_the_plugin(start, view):
    """Its size may follow from the pods of a tenant."""
    view.served = [("large", endpoint("/large", lambda _: "x" * (17 << 20)))]

    response = start().tcp.get("/large")

    assert response.status_code == 503
    assert "more than 16777216" in response.json()["error"]
    assert view.failed == []


def test_a_number_that_json_cannot_express_becomes_null_and_a_set_a_list(start, view):
    odd = {"nan": float("nan"), "huge": 10**5000, 7: {3}, "fine": [True, 1.5, None]}
    view.served = [("odd", endpoint("/odd", lambda _: odd))]

    answer = start().tcp.get("/odd").json()

    assert answer == {"nan": None, "huge": None, "7": [3], "fine": [True, 1.5, None]}


class Own:
    """A type of a plugin's own."""


ENDLESS: dict[str, object] = {"a": 1}
ENDLESS["self"] = ENDLESS
MISFITS = {
    "an object": (Own(), "returned a Own;"),
    "a record": (make_pod(), "returned a Pod;"),
    "an object within": ({"pods": [1, {"of": Own()}]}, "returned a Own at .pods[1].of;"),
    "bytes": ({"raw": b"a"}, "returned a bytes at .raw;"),
    "a key": ({"a": {(1, 2): 3}}, "returned a dict with a key of type tuple at .a;"),
    "itself": (ENDLESS, "returned a dict that contains itself at .self;"),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_an_answer_that_is_no_json_fails_with_its_line_and_what_is_allowed(start, view, kind):
    value, wrong = MISFITS[kind]

    def answer(_):
        return value

    view.served = [("odd", endpoint("/odd", answer))]
    response = start().tcp.get("/odd")

    line = answer.__code__.co_firstlineno
    assert response.status_code == 503
    assert wrong in response.json()["error"]
    assert "plugin 'odd'" in response.json()["error"]
    assert response.json()["error"].endswith(
        "allowed is an Answer, or JSON: a dict, list, tuple, set, str, int, float, bool or None "
        f"(test_plugin_endpoints.py:{line} in answer)"
    )
    assert view.failed == [("odd", "endpoint mine")]


def test_a_plugin_that_hangs_delays_neither_probes_nor_metrics(start, view):
    view.served = [("hung", endpoint("/hung"))]
    agent = start()
    with agent.connect() as first, agent.connect() as second:
        for waiting in (first, second):
            waiting.sendall(b"GET /hung HTTP/1.1\r\nhost: a\r\n\r\n")

        statuses = [
            agent.tcp.get(path).status_code for path in ("/healthz", "/metrics", "/observe")
        ]
        view.release.set()
        answer = first.recv(2000)

    assert statuses == [200, 200, 200]
    assert answer.startswith(b"HTTP/1.1 503")


def test_stopping_does_not_wait_for_a_plugin_that_hangs(start, view):
    view.served = [("hung", endpoint("/hung"))]
    agent = start()
    with agent.connect() as waiting:
        waiting.sendall(b"GET /hung HTTP/1.1\r\nhost: a\r\n\r\n")
        agent.tcp.get("/healthz")

        agent.server.stop()
        was_released = view.release.is_set()

    assert not was_released
    assert agent.server.address is None


def test_of_a_plugin_with_thousands_of_endpoints_the_first_are_served(start, view):
    many = [("greedy", endpoint(f"/greedy/{number}")) for number in range(3_000)]
    view.served = [*many, ("modest", endpoint("/modest"))]

    with capture_logs() as logs:
        agent = start()

    paths = agent.tcp.get("/openapi.json").json()["paths"]
    assert sum(path.startswith("/greedy/") for path in paths) == MOST_OF_PLUGIN
    assert agent.tcp.get("/modest").status_code == 200
    assert [entry["offered"] for entry in logs if entry["event"] == "endpoints_left_out"] == [3_000]


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_a_path_of_the_cores_own_goes_to_no_plugin(start, view, method):
    view.served = [("greedy", endpoint("/metrics", method=method, acts=False))]

    with capture_logs() as logs:
        agent = start()

    assert agent.tcp.get("/metrics").text.startswith("# HELP")
    assert agent.unix.post("/metrics").status_code == 405
    assert logs[0]["event"] == "endpoint_refused"
    assert logs[0]["plugin"] == "greedy"


def test_a_pattern_that_would_match_the_cores_paths_does_not_take_them(start, view):
    view.served = [("greedy", endpoint("/{anything}"))]
    agent = start()

    assert agent.tcp.get("/healthz").json()["alive"] is True
    assert agent.tcp.get("/other").json() == {"fine": True}


def test_a_path_that_two_plugins_claim_goes_to_neither(start, view):
    view.served = [("one", endpoint("/same")), ("two", endpoint("/same"))]

    with capture_logs() as logs:
        response = start().tcp.get("/same")

    assert response.status_code == 404
    assert [entry["plugin"] for entry in logs] == ["one", "two"]


@pytest.mark.parametrize("path", ["/{id}/{id}", "/a{id}", "/{a-b}", "/{", "/}{"])
def test_a_path_that_cannot_be_routed_costs_only_itself(start, view, path):
    view.served = [("odd", endpoint(path)), ("fine", endpoint("/fine", name="b"))]

    with capture_logs() as logs:
        agent = start()

    assert agent.tcp.get("/fine").status_code == 200
    assert [entry["plugin"] for entry in logs] == ["odd"]


def test_a_plugins_endpoint_that_acts_needs_what_the_core_needs(start, view, token_file):
    acting = endpoint(
        "/act", lambda asked: [asked.json(), str(asked.requester)], method="POST", acts=True
    )
    view.served = [("tracer", acting)]
    agent = start(token_file)

    refused = agent.tcp.post("/act", json={"a": 1})
    local = agent.unix.post("/act", json={"a": 1})

    assert refused.status_code == 401
    assert local.json() == [{"a": 1}, f"socket uid {os.getuid()}"]


def test_an_endpoint_of_repeated_requests_is_audited_as_a_series(start, view):
    alive = endpoint("/alive", lambda _: {}, method="PUT", acts=True, is_series=True)
    act = endpoint("/act", lambda _: {}, method="PUT", acts=True)
    view.served = [("tracer", alive), ("tracer", act)]
    agent = start()

    agent.unix.put("/alive")
    agent.unix.put("/act")

    assert [line for line, _, _ in view.audited] == ["PUT /alive", "PUT /act"]
    assert view.audited_series == [True, False]


def test_openapi_describes_exactly_what_routes(start, view):
    view.served = [
        ("tracer", endpoint("/trace/{id}", parameters={"id": "Which.", "part": "What."})),
        ("linter", endpoint("/violations", name="get-health")),
    ]
    agent = start()

    document = agent.tcp.get("/openapi.json").json()

    operations = {
        (method, path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    names = [operation["operationId"] for operation in operations.values()]
    assert document["openapi"] == "3.1.0"
    assert len(set(names)) == len(names)
    assert operations["get", "/config"]["operationId"] == "GetLayeredConfig"
    assert operations["get", "/violations"]["operationId"] == "LinterGetHealth"
    assert operations["put", "/safe-mode"]["security"] == [{"token": []}]
    assert [(p["name"], p["in"]) for p in operations["get", "/trace/{id}"]["parameters"]] == [
        ("id", "path"),
        ("part", "query"),
    ]
    for method, path in operations:
        # An answer may be a stream without an end: its beginning is enough.
        with agent.unix.stream(method, path.replace("{id}", "1")) as answer:
            beginning = next(answer.iter_bytes(), b"")
        assert answer.status_code != 405, path
        assert b" here; /index lists" not in beginning, path
