"""Who may take up a server's connections, its memory and its time: clients that mean no good."""

import asyncio
import errno
import json
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from structlog.testing import capture_logs

from temper_core import (
    Address,
    BoundedServer,
    Bounds,
    MachineError,
    extend_exchange,
    listen_on,
)
from tests.core.http.dialling import (
    ASKED,
    ASKED_THEN,
    PROBED,
    answer,
    answering,
    answering_then,
    head_of,
    is_ended,
    served,
)

BRISK = Bounds(head_s=0.2, most_open=4, most_waiting=4)
CALM = Bounds(most_open=4, most_waiting=4)
UNFINISHED = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n12"
LARGE_BYTES = 16 << 20


async def answer_at_length(_):
    return Response(bytes(LARGE_BYTES), headers={"connection": "close"})


async def answer_never(_):
    await asyncio.Event().wait()


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: a\r\n"])
def test_a_connection_that_never_asks_is_ended(said):
    async def run():
        async with served(answering(), BRISK) as connected:
            reader, _ = await connected(said)
            return await is_ended(reader)

    assert asyncio.run(run())


def test_a_head_that_drips_is_not_waited_for():
    async def run():
        async with served(answering(), BRISK) as connected:
            reader, writer = await connected()
            ended = asyncio.create_task(is_ended(reader))
            while not ended.done():
                writer.write(b"G")
                await asyncio.sleep(0.05)
            return ended.result()

    assert asyncio.run(run())


def test_a_connection_that_has_asked_may_not_drip_either():
    async def run():
        async with served(answering(), BRISK) as connected:
            reader, writer = await connected(ASKED)
            await head_of(reader)
            await reader.readline()
            writer.write(b"G")
            return await is_ended(reader)

    assert asyncio.run(run())


def test_a_connection_rests_between_two_requests_but_not_for_ever():
    async def run():
        async with served(answering(), Bounds(head_s=0.1, rest_s=1)) as connected:
            reader, writer = await connected(ASKED)
            first = await head_of(reader) + (await reader.readline()).decode()
            await asyncio.sleep(0.3)
            writer.write(ASKED)
            second = await head_of(reader) + (await reader.readline()).decode()
            return first, second, await is_ended(reader)

    first, second, ended = asyncio.run(run())

    assert first.startswith("HTTP/1.1 200 ")
    assert second == first
    assert ended


@pytest.mark.parametrize("asked", [UNFINISHED, b"GET /never HTTP/1.1\r\nhost: a\r\n\r\n"])
def test_a_request_and_its_answer_have_their_time(asked):
    async def run():
        app = answering(Route("/never", answer_never))
        async with served(app, Bounds(head_s=60, exchange_s=0.2, stop_s=1)) as connected:
            reader, _ = await connected(asked)
            return await is_ended(reader)

    assert asyncio.run(run())


@pytest.mark.parametrize(("extra_s", "whole"), [(0.0, False), (5.0, True)])
def test_an_application_gives_the_pieces_of_a_stream_more_time(extra_s, whole):
    async def stream(request):
        async def pieces():
            for number in range(4):
                if extra_s:
                    extend_exchange(request.scope, extra_s)
                yield b"%d" % number
                await asyncio.sleep(0.1)
            yield b"end"

        return StreamingResponse(pieces(), headers={"connection": "close"})

    async def run():
        app = answering(Route("/stream", stream))
        async with served(app, Bounds(head_s=60, exchange_s=0.2, stop_s=1)) as connected:
            reader, _ = await connected(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n")
            return await reader.read()

    assert (b"end" in asyncio.run(run())) is whole


def test_a_scope_of_another_server_has_no_exchange_to_extend():
    extend_exchange({"type": "http"}, 1.0)


def test_a_client_that_resets_the_connection_at_a_refusal_writes_nothing_into_the_log(
    caplog, monkeypatch
):
    """A reset that arrives between the two calls is a matter of microseconds."""
    closed = asyncio.selector_events._SelectorSocketTransport.write_eof

    def reset(transport):
        if transport.get_extra_info("sockname")[1] == port:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        closed(transport)

    async def run():
        nonlocal port
        async with served(answering(), BRISK) as connected:
            reader, writer = await connected()
            port = writer.get_extra_info("peername")[1]
            writer.write(ASKED + b"5\r\n\r\n")
            return await head_of(reader)

    port = 0
    monkeypatch.setattr(asyncio.selector_events._SelectorSocketTransport, "write_eof", reset)

    assert asyncio.run(run()).startswith("HTTP/1.1 200 ")
    assert caplog.text == ""


def test_silent_connections_make_room_for_one_that_asks():
    async def run():
        async with served(answering(), CALM) as connected:
            silent = [await connected() for _ in range(20)]
            reader, _ = await connected(ASKED)
            head = await head_of(reader)
            return head, await is_ended(silent[0][0])

    head, ended = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert ended


def test_of_silent_connections_the_one_that_drips_wins_nothing():
    async def run():
        async with served(answering(), CALM) as connected:
            drips, writer = await connected(b"G")
            others = [await connected() for _ in range(3)]
            writer.write(b"E")
            await asyncio.sleep(0.1)
            newest, _ = await connected(ASKED)
            await head_of(newest)
            ended = await is_ended(drips)
            others[0][1].write(ASKED)
            return ended, await head_of(others[0][0])

    ended, head = asyncio.run(run())

    assert ended
    assert head.startswith("HTTP/1.1 200 ")


def test_a_request_in_progress_makes_no_room_for_silent_ones():
    async def run():
        async with served(answering(), CALM) as connected:
            reader, writer = await connected(UNFINISHED)
            for _ in range(20):
                await connected()
            writer.write(b"34")
            return await head_of(reader), await reader.readline()

    head, said = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert said == b"4\n"


def test_who_owes_the_rest_of_a_request_for_longest_makes_room_where_nobody_is_silent():
    async def run():
        async with served(answering(), CALM) as connected:
            owing = [await connected(UNFINISHED) for _ in range(4)]
            await asyncio.sleep(0.1)
            owing[0][1].write(b"3")
            newcomer, _ = await connected(ASKED)
            head = await head_of(newcomer)
            ended = await is_ended(owing[0][0])
            owing[1][1].write(b"34")
            return head, ended, await head_of(owing[1][0])

    head, ended, finished = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert ended
    assert finished.startswith("HTTP/1.1 200 ")


def test_who_does_not_read_its_answers_makes_room_where_nobody_is_silent():
    async def answer_at_once(_):
        return Response(bytes(LARGE_BYTES))

    async def run():
        async with served(answering(Route("/long", answer_at_once)), CALM) as connected:
            # The second answer waits until the first is read.
            asked = b"GET /long HTTP/1.1\r\nhost: a\r\n\r\n" * 2
            unread = [await connected(asked, limit=1024) for _ in range(4)]
            heads = [await reader.read(1) for reader, _ in unread]
            await asyncio.sleep(0.1)
            newcomer, _ = await connected(ASKED)
            return heads, await head_of(newcomer)

    with capture_logs() as logs:
        heads, head = asyncio.run(run())

    assert heads == [b"H"] * 4
    assert head.startswith("HTTP/1.1 200 ")
    assert logs == []


def test_a_newcomer_waits_for_a_place_and_is_refused_where_none_becomes_free():
    told = []

    async def run():
        may_answer = asyncio.Event()
        bounds, tell = Bounds(most_open=4, wait_s=0.2), partial(told.append, "refused")
        async with served(answering_then(may_answer), bounds, refused=tell) as connected:
            asking = [await connected(ASKED_THEN) for _ in range(4)]
            await asyncio.sleep(0.1)
            silent = await is_ended((await connected())[0])
            refused = [await (await connected(ASKED))[0].read() for _ in range(3)]
            may_answer.set()
            return silent, refused, [await head_of(reader) for reader, _ in asking]

    with capture_logs() as logs:
        silent, refused, heads = asyncio.run(run())

    assert silent
    assert {(each[:13], b"connection: close" in each) for each in refused} == {
        (b"HTTP/1.1 503 ", True)
    }
    assert all(head.startswith("HTTP/1.1 200 ") for head in heads)
    assert [(each["event"], each["limit"]) for each in logs] == [("request_refused", 4)]
    assert told == ["refused"] * 3


def test_a_probe_is_answered_once_where_there_is_no_place():
    async def run():
        may_answer = asyncio.Event()
        app = answering_then(may_answer, Route("/healthz", answer))
        async with served(app, Bounds(most_open=4, wait_s=60)) as connected:
            asking = [await connected(ASKED_THEN) for _ in range(8)]
            await asyncio.sleep(0.1)
            reader, _ = await connected(PROBED * 2)
            said = await reader.read()
            may_answer.set()
            return said, [await head_of(reader) for reader, _ in asking]

    said, heads = asyncio.run(run())

    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.count(b"it answers") == 1
    assert b"connection: close" in said
    assert all(head.startswith("HTTP/1.1 200 ") for head in heads)


def test_of_too_many_that_wait_the_oldest_makes_room_and_a_probe_needs_no_place():
    async def run():
        may_answer = asyncio.Event()
        app = answering_then(may_answer, Route("/healthz", answer))
        bounds = Bounds(most_open=1, most_waiting=2, wait_s=60)
        async with served(app, bounds) as connected:
            placed, _ = await connected(ASKED_THEN)
            await asyncio.sleep(0.1)
            silent = [(await connected())[0] for _ in range(3)]
            asking = [(await connected(ASKED))[0] for _ in range(3)]
            probe, _ = await connected(PROBED)
            ends = await is_ended(silent[0]), await asking[0].read(), await head_of(probe)
            may_answer.set()
            return ends, [await head_of(reader) for reader in (placed, *asking[1:])]

    (ended, refused, probed), heads = asyncio.run(run())

    assert ended
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert all(head.startswith("HTTP/1.1 200 ") for head in (probed, *heads))


def test_a_client_that_connects_is_not_closed_for_another_that_asks_before_it():
    async def run():
        may_answer = asyncio.Event()
        app = answering_then(may_answer, Route("/healthz", answer))
        async with served(app, CALM) as connected:
            asking = [await connected(ASKED_THEN) for _ in range(3)]
            await asyncio.sleep(0.1)
            probe, writer = await connected()
            asking += [await connected(ASKED_THEN) for _ in range(3)]
            writer.write(PROBED)
            head = await head_of(probe)
            may_answer.set()
            return head, [await head_of(reader) for reader, _ in asking]

    head, heads = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert all(head.startswith("HTTP/1.1 200 ") for head in heads)


async def keep_requests_queued(connected, source):
    """Always have requests queued on one connection from *source*."""
    while True:
        with suppress(OSError):
            reader, writer = await connected(ASKED * 50, local_addr=(source, 0))
            while await reader.read(1 << 12):
                writer.write(ASKED * 5)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("source", ["127.0.0.2", "127.0.0.3"])
def test_clients_that_always_have_requests_queued_leave_places_to_others(source):
    async def run():
        async with served(answering(), Bounds(most_open=4)) as connected:
            queueing = [
                asyncio.create_task(keep_requests_queued(connected, "127.0.0.2")) for _ in range(8)
            ]
            await asyncio.sleep(0.2)
            heads = []
            for _ in range(10):
                reader, _ = await connected(ASKED, local_addr=(source, 0))
                heads.append(await head_of(reader))
            for task in queueing:
                task.cancel()
            await asyncio.wait(queueing)
            return heads

    heads = asyncio.run(run())

    assert len(heads) == 10
    assert all(head.startswith("HTTP/1.1 200 ") for head in heads)


def test_answers_that_nobody_reads_count_though_their_connections_are_closing():
    asked = b"GET /long HTTP/1.1\r\nhost: a\r\n\r\n"

    async def read_to_the_end(reader):
        read = 0
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 20):
                read += len(piece)
        return read

    async def run():
        app = answering(Route("/long", answer_at_length))
        async with served(app, CALM) as connected:
            # Their first bytes tell that they are answered; what is left waits in the server.
            asking = [await connected(asked, limit=1024) for _ in range(12)]
            heads = [await reader.read(1) for reader, _ in asking]
            whole = [await read_to_the_end(reader) > LARGE_BYTES for reader, _ in asking]
            return heads, sum(whole)

    heads, whole = asyncio.run(run())

    assert heads == [b"H"] * 12
    assert whole == 4


async def is_hung_up_on_while_it_writes(writer):
    async with asyncio.timeout(20):
        while True:
            try:
                writer.write(b"more")
                await writer.drain()
            except ConnectionError:
                return True
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("first", [b"", ASKED])
def test_a_refused_client_that_goes_on_sending_is_hung_up_on(first):
    async def run():
        async with served(answering(), CALM) as connected:
            reader, writer = await connected(first + b"no HTTP\r\n\r\n")
            said = await reader.read()
            return said, await is_hung_up_on_while_it_writes(writer)

    said, ended = asyncio.run(run())

    assert b"HTTP/1.1 400 Bad Request" in said
    assert ended


def test_what_is_no_http_is_refused_in_json_with_the_headers_of_every_answer():
    async def run():
        async with served(answering(), CALM, headers=[("x-kind", "Own")]) as connected:
            said = await connected(b"\x16\x03\x01 no HTTP \r\n\r\n"), await connected(ASKED)
            (refused, _), (answered, _) = said
            return await head_of(refused), await refused.read(), await head_of(answered)

    refusal, body, answered = asyncio.run(run())

    assert refusal.startswith("HTTP/1.1 400 ")
    assert "x-kind: Own\r\ncontent-type: application/json\r\n" in refusal
    assert json.loads(body) == {"error": "not a valid HTTP/1.1 request"}
    assert "x-kind: Own\r\n" in answered
    assert "server:" not in answered


class Lived:
    """An application that lives as long as its server, and keeps account of it."""

    def __init__(self, fails=False):
        self.told, self._fails = [], fails

    def application(self):
        @asynccontextmanager
        async def lifespan(_):
            if self._fails:
                raise RuntimeError("no")
            self.told.append("begun")
            yield
            self.told.append("ended")

        return Starlette(routes=answering().routes, lifespan=lifespan)


@pytest.mark.parametrize(("has_lifespan", "told"), [(True, ["begun", "ended"]), (False, [])])
def test_an_application_lives_as_long_as_its_server_where_that_is_wanted(has_lifespan, told):
    lived = Lived()

    async def run():
        async with served(lived.application(), CALM, has_lifespan=has_lifespan) as connected:
            reader, _ = await connected(ASKED)
            await head_of(reader)

    asyncio.run(run())

    assert lived.told == told


def test_an_application_that_does_not_begin_is_an_error_of_the_machine():
    async def run():
        with listen_on(Address("127.0.0.1", 0), "--listen") as listening:
            server = BoundedServer(Lived(fails=True).application(), CALM, has_lifespan=True)
            await server.serve([listening])

    with pytest.raises(MachineError, match="application did not start"):
        asyncio.run(run())


def test_a_server_that_has_begun_answers_and_leaves_signals_alone():
    def handlers():
        return signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    async def run():
        before = handlers()
        listening = listen_on(Address("127.0.0.1", 0), "--listen")
        server = BoundedServer(answering(), CALM)
        serving = asyncio.create_task(server.serve([listening]))
        await server.wait_begun()
        while_serving = handlers()
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(ASKED)
        head = await head_of(reader)
        server.tell_to_stop()
        await serving
        writer.close()
        return before, while_serving, head

    before, while_serving, head = asyncio.run(run())

    assert while_serving == before
    assert head.startswith("HTTP/1.1 200 ")


def test_a_request_in_progress_is_answered_before_the_stop_but_not_waited_for_without_end():
    async def run(rest):
        listening = listen_on(Address("127.0.0.1", 0), "--listen")
        server = BoundedServer(answering(), Bounds(stop_s=1))
        serving = asyncio.create_task(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(UNFINISHED)
        await asyncio.sleep(0.1)
        server.tell_to_stop()
        writer.write(rest)
        async with asyncio.timeout(20):
            await serving
        said = await reader.read()
        writer.close()
        return said

    assert asyncio.run(run(b"34")).startswith(b"HTTP/1.1 200 ")
    assert not asyncio.run(run(b"")).startswith(b"HTTP/1.1 200 ")


def test_nothing_slow_is_imported_before_a_server_is_asked_for():
    code = (
        "import sys, temper_core; temper_core.Address; temper_core.parse_address\n"
        "temper_core.Bounds; temper_core.listen_on\n"
        "slow = {'asyncio', 'ssl', 'structlog', 'starlette', 'uvicorn'}\n"
        "print(*sorted(slow & set(sys.modules))); temper_core.BoundedServer\n"
        "print('uvicorn' in sys.modules)"
    )

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout == "\nTrue\n"


@pytest.mark.parametrize("path", [b"/", b"/healthz"])
def test_a_request_with_two_lengths_is_refused_and_what_follows_it_is_not_answered(path):
    lengths = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    said = b"POST " + path + b" HTTP/1.1\r\nhost: a\r\n" + lengths + ASKED

    async def run():
        async with served(answering(), CALM) as connected:
            reader, _ = await connected(said)
            return (await reader.read()).decode()

    whole = asyncio.run(run())

    head, _, body = whole.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 400 ")
    assert head.lower().count("connection: close") == 1
    assert "content-length together with transfer-encoding" in json.loads(body)["error"]
    assert "it answers" not in whole


def hosts_and_paths(said):
    """Return what an application sees of a request, and the answer."""
    seen = []

    async def application(scope, _, send):
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        seen.append((hosts, scope["path"], scope["raw_path"], scope["query_string"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    async def run():
        async with served(application, CALM) as connected:
            reader, _ = await connected(said)
            return (await reader.read()).decode()

    return seen, asyncio.run(run())


@pytest.mark.parametrize(
    ("target", "host", "path"),
    [
        ("http://evil.example:90/healthz?a=1", b"evil.example:90", "/healthz"),
        ("HTTPS://[::1]/a%20b?a=1", b"[::1]", "/a b"),
        ("http://b?a=1", b"b", "/"),
    ],
)
def test_a_url_as_the_target_stands_for_its_path_and_its_host(target, host, path):
    said = f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"

    ((seen,), answer) = hosts_and_paths(said.encode())

    assert answer.startswith("HTTP/1.1 200 ")
    assert seen == ([host], path, path.replace(" ", "%20").encode(), b"a=1")


@pytest.mark.parametrize("target", ["ftp://a/b", "http:///b", "http://user@a/b"])
def test_a_url_without_a_host_of_http_is_refused_in_one_line(target):
    said = f"GET {target} HTTP/1.1\r\nhost: a\r\n\r\n"

    seen, answer = hosts_and_paths(said.encode())

    assert answer.startswith("HTTP/1.1 400 ")
    assert "no URL of http" in answer
    assert not seen
