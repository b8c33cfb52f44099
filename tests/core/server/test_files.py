"""Files over real sockets: whole, in part, or not at all."""

import os
import re
import time
from email.utils import formatdate

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core.records.endpoints import Answer, Endpoint
from tests.patience import PATIENCE_S


def wait_for(is_so):
    until = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)


CONTENT = bytes(range(256)) * 4
LARGE = os.urandom(1 << 20) * 2


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trace.bin"
    path.write_bytes(CONTENT)
    os.utime(path, (1_750_000_000, 1_750_000_000))
    return path


@pytest.fixture
def serve(start, view):
    """Serve a path as ``/file``."""

    def begin(path, **options):
        answer = lambda _: Answer(file=path, media_type="application/x-trace", **options)  # noqa: E731 - as short as it is
        view.served = [("shop", Endpoint("file", "GET", "/file", "A file.", answer))]
        return start()

    return begin


def test_a_file_comes_whole_with_what_is_needed_to_ask_for_it_again(serve, file):
    response = serve(file).tcp.get("/file")

    assert response.content == CONTENT
    assert response.headers["content-type"] == "application/x-trace"
    assert response.headers["accept-ranges"] == "bytes"
    assert response.headers["last-modified"] == formatdate(1_750_000_000, usegmt=True)
    assert response.headers["cache-control"] == "no-cache"
    assert re.fullmatch(r'"[0-9a-f-]+"', response.headers["etag"])


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-", (0, 1024)),
        ("bytes=10-19", (10, 20)),
        ("bytes=1000-9999", (1000, 1024)),
        ("bytes=-24", (1000, 1024)),
        ("bytes=-9999", (0, 1024)),
    ],
)
def test_a_range_is_sent_alone(serve, file, asked, span):
    response = serve(file).tcp.get("/file", headers={"range": asked})

    assert response.status_code == 206
    assert response.content == CONTENT[span[0] : span[1]]
    assert response.headers["content-range"] == f"bytes {span[0]}-{span[1] - 1}/1024"


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_a_range_beyond_the_end_cannot_be_satisfied(serve, file, asked):
    response = serve(file).tcp.get("/file", headers={"range": asked})

    assert (response.status_code, response.content) == (416, b"")
    assert response.headers["content-range"] == "bytes */1024"


@pytest.mark.parametrize(
    "asked", ["bytes=9-3", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6", "", "bytes=٣-٤"]
)
def test_what_is_no_single_range_of_bytes_gets_all_of_it(serve, file, asked):
    response = serve(file).tcp.get("/file", headers={"range": asked.encode()})

    assert (response.status_code, response.content) == (200, CONTENT)


def test_a_range_of_an_empty_file_cannot_be_satisfied(serve, file):
    file.write_bytes(b"")
    agent = serve(file)

    assert agent.tcp.get("/file", headers={"range": "bytes=0-"}).status_code == 416
    assert agent.tcp.get("/file").content == b""


def test_what_the_client_has_already_is_not_sent_again(serve, file):
    agent = serve(file)
    tag = agent.tcp.get("/file").headers["etag"]
    date = formatdate(1_750_000_000, usegmt=True)

    known = [
        agent.tcp.get("/file", headers=headers)
        for headers in (
            {"if-none-match": tag},
            {"if-none-match": f'"other", W/{tag}'},
            {"if-none-match": "*"},
            {"if-modified-since": date},
            {"if-none-match": tag, "range": "bytes=0-1"},
        )
    ]
    news = [
        agent.tcp.get("/file", headers=headers)
        for headers in (
            {"if-none-match": '"other"'},
            {"if-none-match": '"other"', "if-modified-since": date},
            {"if-modified-since": formatdate(1_749_999_999, usegmt=True)},
            {"if-modified-since": "yesterday"},
        )
    ]

    assert {(each.status_code, each.content) for each in known} == {(304, b"")}
    assert {each.headers["etag"] for each in known} == {tag}
    assert {(each.status_code, each.content) for each in news} == {(200, CONTENT)}


def test_if_range_gives_the_part_of_the_same_file_and_all_of_another(serve, file):
    agent = serve(file)
    tag = agent.tcp.get("/file").headers["etag"]

    def status(condition):
        headers = {"range": "bytes=0-9", "if-range": condition}
        return agent.tcp.get("/file", headers=headers).status_code

    assert status(tag) == 206
    assert status(formatdate(1_750_000_000, usegmt=True)) == 206
    assert status('"other"') == 200
    assert status(f"W/{tag}") == 200
    assert status(formatdate(1_760_000_000, usegmt=True)) == 200
    os.utime(file, (1_760_000_000, 1_760_000_000))
    assert status(tag) == 200


def test_a_large_file_comes_in_pieces_and_as_a_download_that_goes_on(serve, file):
    file.write_bytes(LARGE)
    agent = serve(file)

    whole = agent.tcp.get("/file")
    rest = agent.tcp.get("/file", headers={"range": f"bytes={1 << 20}-"})
    head = agent.tcp.head("/file")

    assert whole.content == LARGE
    assert whole.headers["content-length"] == str(2 << 20)
    assert rest.content == LARGE[1 << 20 :]
    assert (head.content, head.headers["content-length"]) == (b"", str(2 << 20))


def test_a_file_that_shrinks_while_it_is_sent_is_cut(serve, view, file):
    with file.open("wb") as sparse:
        sparse.truncate(64 << 20)
    agent = serve(file)
    with agent.connect() as raw:
        raw.sendall(b"GET /file HTTP/1.1\r\nhost: a\r\n\r\n")
        raw.recv(1000)
        os.truncate(file, 1000)
        size = 0
        try:
            while piece := raw.recv(1 << 20):
                size += len(piece)
        except ConnectionResetError:
            pass

    assert size < 64 << 20
    wait_for(lambda: view.ended != [])
    assert [each[2] for each in view.ended] == ["OSError: the file has become shorter"]


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "below a file", "socket"])
def test_what_is_no_regular_file_is_not_found_and_no_failure(serve, view, file, kind, tmp_path):
    path = tmp_path / "odd"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "below a file":
        path = file / "x"
    elif kind == "socket":
        os.mknod(path, 0o140600)

    response = serve(path).tcp.get("/file")

    assert response.status_code == 404
    assert response.json() == {"error": "there is no such file"}
    assert view.failed == []


def test_a_file_of_another_status_has_neither_ranges_nor_conditions(serve, file):
    agent = serve(file, status=404)

    response = agent.tcp.get("/file", headers={"range": "bytes=0-1", "if-none-match": "*"})

    assert (response.status_code, response.content) == (404, CONTENT)


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
    | st.tuples(st.integers(0, 2000), st.integers(0, 2000)).map(lambda s: f"bytes={s[0]}-{s[1]}"),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_range_or_condition_whatever_is_an_error_of_the_server(lasting_file, asked, condition):
    agent = lasting_file
    headers = {"range": asked.strip(), "if-range": condition.strip()}
    others = {"if-none-match": condition.strip(), "if-modified-since": asked.strip()}

    ranged = agent.tcp.get("/lasting", headers=headers)
    conditional = agent.tcp.get("/lasting", headers=others)

    assert ranged.status_code in {200, 206, 416}
    if ranged.status_code == 206:
        first, last = re.match(r"bytes (\d+)-(\d+)/1024", ranged.headers["content-range"]).groups()
        assert ranged.content == CONTENT[int(first) : int(last) + 1]
    assert conditional.status_code in {200, 304}


@pytest.fixture
def lasting_file(start, view, file):
    answer = lambda _: Answer(file=file)  # noqa: E731 - as short as it is
    view.served = [("shop", Endpoint("file", "GET", "/lasting", "A file.", answer))]
    return start()
