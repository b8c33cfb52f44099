"""Paths that plugins claim: the page at ``/``, assets below a folder, and what stays the core's."""

from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from temper_core.records.endpoints import Answer, Endpoint


def endpoint(path, answer=lambda _: Answer(b"mine", "text/html"), method="GET", **options):
    given = {"name": "mine", "summary": "Mine."} | options
    return Endpoint(method=method, path=path, answer=answer, **given)


def echo(asked):
    return {"path": asked.path, **asked.query}


def test_a_plugin_may_have_the_page_at_the_root_and_the_index_stays_reachable(start, view):
    view.served = [("page", endpoint("/"))]
    agent = start()

    assert agent.tcp.get("/").text == "mine"
    assert agent.tcp.head("/").headers["content-length"] == "4"
    assert agent.tcp.get("/index").text.startswith("Temper agent")
    assert "(plugin page)" in agent.tcp.get("/index").text


def test_two_claimants_of_the_root_leave_it_to_the_index(start, view):
    view.served = [("one", endpoint("/")), ("two", endpoint("/"))]

    with capture_logs() as logs:
        agent = start()

    assert agent.tcp.get("/").text.startswith("Temper agent")
    assert [entry["plugin"] for entry in logs] == ["one", "two"]


def test_one_who_takes_what_is_posted_to_the_root_leaves_the_index_there(start, view):
    view.served = [("page", endpoint("/", method="POST"))]
    agent = start()

    assert agent.tcp.get("/").text.startswith("Temper agent")
    assert agent.tcp.post("/").text == "mine"


def test_the_last_parameter_may_take_the_rest_of_a_path(start, view):
    view.served = [
        ("page", endpoint("/assets/{file:path}", echo)),
        ("page", endpoint("/{rest:path}", lambda _: Answer(b"any"), name="any")),
        ("page", endpoint("/assets/{id}", lambda _: Answer(b"one"), name="one")),
    ]
    agent = start()

    assert agent.tcp.get("/assets/js/a.js").json()["file"] == "js/a.js"
    assert agent.tcp.get("/assets/a").text == "one"
    assert agent.tcp.get("/a/b/c").text == "any"
    assert agent.tcp.get("/healthz").json()["alive"] is True


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
def test_no_pattern_takes_a_method_that_a_path_of_the_core_does_not(start, view, method):
    view.served = [("greedy", endpoint("/{rest:path}", method=method))]
    agent = start()

    assert agent.unix.request(method, "/metrics").status_code == 405
    assert agent.unix.request(method, "/safe-mode").status_code == 405
    assert agent.unix.request(method, "/other").text == "mine"


@pytest.mark.parametrize("path", ["/trials/{name}", "/trials/7", "/trials/{rest:path}"])
def test_no_path_takes_what_a_pattern_of_the_core_has(start, view, path):
    view.served = [("greedy", endpoint(path, method="DELETE"))]

    response = start().unix.delete("/trials/7")

    assert response.json() == {"error": "there is no trial '7'"}


def test_two_patterns_that_take_the_same_go_to_neither_however_they_are_named(start, view):
    view.served = [("one", endpoint("/t/{id}")), ("two", endpoint("/t/{name}"))]

    assert start().tcp.get("/t/1").status_code == 404


@pytest.mark.parametrize("path", ["/{a:path}/b", "/{a:int}", "/a{b:path}", "/{a:path}{b}"])
def test_the_rest_of_a_path_is_taken_at_its_end_only(start, view, path):
    view.served = [("odd", endpoint(path))]

    with capture_logs() as logs:
        start()

    assert [entry["event"] for entry in logs] == ["endpoint_refused"]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../secret",
        "/assets/%2e%2e/secret",
        "/assets/%2e%2e%2fsecret",
        "/assets/a/../../secret",
        "/assets/./a",
        "/assets//etc/passwd",
        "/assets/a%00b",
        "/assets/a%0d%0ab",
        "/assets/..%5csecret",
        "/t/..",
        "/t/%2e%2e",
    ],
)
def test_no_path_leads_out_of_the_folder_of_an_endpoint(start, view, path):
    view.served = [
        ("page", endpoint("/assets/{file:path}", echo)),
        ("page", endpoint("/t/{id}", echo, name="b")),
    ]
    with start().connect() as raw:
        raw.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(4096), b""))

    assert answer.startswith(b"HTTP/1.1 404")


def test_openapi_describes_methods_bodies_media_types_and_streams(start, view):
    schema = {"type": "object", "properties": {"pod": {"type": "string"}}}
    view.served = [
        ("page", endpoint("/", media_type="text/html")),
        ("page", endpoint("/assets/{file:path}", name="assets", parameters={"file": "Which."})),
        ("page", endpoint("/news", name="news", media_type="text/event-stream")),
        ("page", endpoint("/t/{id}", method="DELETE", name="t", acts=True)),
        ("page", endpoint("/t/{id}", method="PATCH", name="p", acts=True, body_schema=schema)),
        ("page", endpoint("/u", method="PUT", name="p", acts=True, body_schema={"x": {1, 2}})),
    ]
    agent = start()

    paths = agent.tcp.get("/openapi.json").json()["paths"]

    media = {path: list(paths[path]["get"]["responses"]["200"]["content"]) for path in (
        "/", "/assets/{file}", "/news", "/metrics", "/observe", "/index")}  # fmt: skip
    assert media == {
        "/": ["text/html"],
        "/assets/{file}": ["application/json"],
        "/news": ["text/event-stream"],
        "/metrics": ["text/plain"],
        "/observe": ["application/json"],
        "/index": ["text/plain"],
    }
    assert "requestBody" not in paths["/t/{id}"]["delete"]
    body = paths["/t/{id}"]["patch"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == schema
    names = [
        operation["operationId"] for methods in paths.values() for operation in methods.values()
    ]
    assert len(set(names)) == len(names)


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("./%\\"), max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_path_whatever_is_an_error_of_the_server(assets, path):
    response = assets.tcp.get("/assets/" + quote(path, safe="/.%"))

    assert response.status_code in {200, 404}
    if response.status_code == 200 and "file" in response.json():
        assert ".." not in response.json()["file"].split("/")


@pytest.fixture
def assets(start, view):
    view.served = [("page", endpoint("/assets/{file:path}", echo))]
    return start()
