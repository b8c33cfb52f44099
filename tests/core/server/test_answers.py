"""Full answers over real sockets: what they may be, and what they may not."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.errors import InputError
from temper_core.records.endpoints import Answer, Cookie, Endpoint
from temper_core.server import bodies
from temper_core.server.headers import given_headers

HTML = "text/html; charset=utf-8"


def page(answer, method="GET", path="/page", **options):
    return ("shop", Endpoint("page", method, path, "A page.", answer, **options))


def test_a_page_has_its_media_type_status_headers_and_cookies(start, view):
    cookies = (Cookie("theme", "dark", max_age_s=60, path="/page"), Cookie("old", "", max_age_s=0))
    answer = Answer(b"<p>", HTML, 203, {"X-Shop": "1"}, cookies)
    view.served = [page(lambda _: answer)]

    response = start().tcp.get("/page")

    assert (response.status_code, response.content) == (203, b"<p>")
    assert response.headers["content-type"] == HTML
    assert response.headers["x-shop"] == "1"
    assert response.headers.get_list("set-cookie") == [
        "theme=dark; Path=/page; Max-Age=60; HttpOnly; SameSite=Strict",
        "old=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
    ]


def test_a_plugins_answer_has_security_headers_that_it_may_replace_but_for_nosniff(start, view):
    own = {"Content-Security-Policy": "default-src 'none'", "cache-control": "max-age=60"}
    view.served = [
        page(lambda _: Answer(b"a", HTML)),
        ("two", Endpoint("b", "GET", "/own", "B.", lambda _: Answer(b"b", HTML, headers=own))),
        ("bad", Endpoint("c", "GET", "/bad", "C.", lambda _: 1 / 0)),
    ]
    agent = start()

    usual, replaced, failed = (agent.tcp.get(path).headers for path in ("/page", "/own", "/bad"))

    for headers in (usual, failed):
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
    assert replaced.get_list("content-security-policy") == ["default-src 'none'"]
    assert replaced.get_list("cache-control") == ["max-age=60"]
    assert {each["x-content-type-options"] for each in (usual, replaced, failed)} == {"nosniff"}
    assert "content-security-policy" not in agent.tcp.get("/observe").headers


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"", headers={"x-a": "1\r\nset-cookie: a=b"}),
        Answer(b"", headers={"x-a\r\nx-b": "1"}),
        Answer(b"", headers={"x-a": "1\x00"}),
        Answer(b"", headers={"x a": "1"}),
        Answer(b"", headers={"x-a": "\u20ac"}),
        Answer(b"", headers={"x-a": 7}),
        Answer(b"", headers={7: "x"}),
        Answer(b"", headers={"Content-Length": "7"}),
        Answer(b"", headers={"transfer-encoding": "chunked"}),
        Answer(b"", headers={"content-type": HTML}),
        Answer(b"", headers={"set-cookie": "a=b"}),
        Answer(b"", headers={"X-Content-Type-Options": "sniff"}),
        Answer(b"", headers={f"x-{n}": "1" for n in range(65)}),
        Answer(b"", headers={"x-a": "x" * 20_000}),
        Answer(b"", headers=[("x-a", "1")]),
        Answer(b"", media_type="text/html\r\nx-a: 1"),
        Answer(b"", media_type="html"),
        Answer(b"", status=99),
        Answer(b"", status=101),
        Answer(b"", status=600),
        Answer(b"", status="200"),
        Answer(b"", status=True),
        Answer("text"),
        Answer(b"x", stream=iter([b"y"])),
        Answer(b"x", status=204),
        Answer(b"", cookies=("a=b",)),
        Answer(b"", cookies=7),
        Answer(file="/etc\x00"),
        Answer(file=7.5),
    ],
)
def test_what_cannot_be_sent_is_the_plugins_failure_and_sends_none_of_it(start, view, answer):
    view.served = [page(lambda _: answer)]
    agent = start()

    response = agent.tcp.get("/page")

    is_no_file = answer.file == "/etc\x00"
    assert response.status_code == (404 if is_no_file else 503)
    assert "x-a" not in response.headers
    assert "set-cookie" not in response.headers
    assert view.failed == ([] if is_no_file else [("shop", "endpoint page")])
    assert agent.tcp.get("/healthz").status_code == 200


@pytest.mark.parametrize("odd", ["a=b", "a;b", "a\r\nb", "", "a" * 65, "é"])
def test_a_cookie_with_an_odd_name_cannot_be_made(odd):
    with pytest.raises(ValueError, match="must match"):
        Cookie(odd, "1")


@pytest.mark.parametrize("path", ["", "page", "/a; Domain=x", "/\r\n"])
def test_a_cookie_with_an_odd_path_cannot_be_made(path):
    with pytest.raises(ValueError, match="must match"):
        Cookie("a", "1", path=path)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_every_method_reaches_its_endpoint(start, view, method):
    view.served = [page(lambda asked: [asked.method, asked.path], method, acts=method != "GET")]
    agent = start()

    response = agent.unix.request(method, "/page")
    other = agent.unix.request("OPTIONS", "/page")

    assert response.json() == [method, "/page"]
    assert other.status_code == 405
    assert method in other.headers["allow"]


def test_head_is_there_where_get_is_and_an_endpoint_may_answer_it_itself(start, view):
    view.served = [
        page(lambda asked: Answer(asked.method.encode() + b"!")),
        page(lambda _: Answer(b"", headers={"x-own": "1"}), "HEAD", "/own"),
        page(lambda _: Answer(b"get"), "GET", "/own"),
    ]
    agent = start()

    usual, own = agent.tcp.head("/page"), agent.tcp.head("/own")

    assert (usual.content, usual.headers["content-length"]) == (b"", "5")
    assert own.headers["x-own"] == "1"
    assert agent.tcp.get("/own").content == b"get"


def test_a_status_without_a_body_has_none(start, view):
    view.served = [page(lambda _: Answer(status=204), "DELETE", acts=True)]

    response = start().unix.delete("/page")

    assert (response.status_code, response.content) == (204, b"")
    assert "content-length" not in response.headers


def test_an_endpoint_is_given_headers_body_and_requester_but_no_token(start, view, token_file):
    def answer(asked):
        return {
            "headers": dict(asked.headers),
            "body": asked.content.decode("latin-1"),
            "who": [asked.requester.way, asked.requester.uid, asked.requester.address],
        }

    view.served = [page(answer, "POST")]
    agent = start(token_file)
    token = {"authorization": "Bearer 0123456789abcdef-the-secret"}

    headers = [("X-Shop", "1"), ("x-shop", "2"), *token.items()]
    tcp = agent.tcp.post("/page", content=b"\xff\x00", headers=headers).json()
    wrong = agent.tcp.post("/page", headers={"authorization": "Bearer wrong"}).json()
    local = agent.unix.post("/page").json()

    assert tcp["headers"]["x-shop"] == "1, 2"
    assert "authorization" not in tcp["headers"]
    assert tcp["body"] == "\xff\x00"
    assert tcp["who"] == ["token", None, "127.0.0.1"]
    assert wrong["who"] == ["", None, "127.0.0.1"]
    assert local["who"] == ["socket", os.getuid(), ""]


def test_a_body_is_bounded_by_what_its_endpoint_takes(start, view):
    view.served = [
        page(lambda asked: len(asked.content), "POST", "/small", largest_body_bytes=10),
        page(lambda asked: len(asked.content), "POST", "/large", largest_body_bytes=1 << 20),
    ]
    agent = start()

    fits = agent.tcp.post("/small", content=b"x" * 10)
    refused = agent.tcp.post("/small", content=b"x" * 11)
    pieces = agent.tcp.post("/small", content=iter([b"x" * 6, b"x" * 6]))
    large = agent.tcp.post("/large", content=b"x" * (1 << 20))

    assert (fits.json(), large.json()) == (10, 1 << 20)
    assert (refused.status_code, pieces.status_code) == (413, 413)
    assert refused.json() == {"error": "the body is larger than 10 bytes"}


def test_too_many_large_bodies_at_a_time_are_refused(start, view, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_IN_ALL_BYTES", 100_000)
    view.served = [page(lambda asked: len(asked.content), "POST", largest_body_bytes=1 << 20)]
    agent = start()

    refused = agent.tcp.post("/page", content=b"x" * 200_000)
    after = [agent.tcp.post("/page", content=b"x" * 60_000).status_code for _ in range(5)]

    assert refused.status_code == 503
    assert after == [200] * 5


def test_what_acts_is_audited_with_who_and_what_became_of_it(start, view, token_file):
    def answer(asked):
        if asked.content:
            raise InputError("body: must be empty")
        return Answer(status=204)

    view.served = [page(answer, "DELETE", "/things/{id}", acts=True), page(lambda _: 1)]
    agent = start(token_file)
    uid = os.getuid()

    agent.unix.delete("/things/1%0A2")
    agent.unix.request("DELETE", "/things/2", content=b"x")
    agent.tcp.delete("/things/3")
    agent.tcp.delete("/things/4", headers={"origin": "http://evil.example"})
    agent.tcp.get("/page")

    unknown = "401 acting needs the bearer token of [server] token_file, or the local socket"
    assert view.audited == [
        ("DELETE /things/1%0A2", f"socket uid {uid}", "404 Not Found"),
        ("DELETE /things/2", f"socket uid {uid}", "400 body: must be empty"),
        ("DELETE /things/3", "127.0.0.1", unknown),
        ("DELETE /things/4", "127.0.0.1", "403 a page of another origin may not act"),
    ]


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5)
    | st.dictionaries(st.from_regex(r"[a-z-]{1,9}", fullmatch=True), st.text(max_size=30))
)
def test_headers_are_either_refused_or_such_as_a_line_can_hold(headers):
    try:
        given_ones = given_headers(headers)
    except ValueError:
        return
    for name, value in given_ones.items():
        line = f"{name}: {value}".encode("latin-1")
        assert not any(byte < 32 and byte != 9 for byte in line)
        assert b":" not in name.encode()
