"""What clients and servers leave behind when they end, in memory, in sockets and in the log."""

import asyncio
import gc
import logging
import socket
import struct
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from structlog.testing import capture_logs

from temper_core import Address, BoundedServer, Bounds, MachineError, listen_on
from temper_core.http.protocol import BoundedProtocol
from tests.core.http.dialling import ASKED, answering, head_of, is_ended, served

TO_RESET = struct.pack("ii", 1, 0)
BROKEN = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n"
LARGE_BYTES = 16 << 20


def asked_for(path):
    return ASKED.replace(b"/ ", f"{path} ".encode())


def reset(writer):
    """Close so that the other side is told of an error."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, TO_RESET)
    writer.transport.abort()


def said_in(caplog):
    return [each.message for each in caplog.records if each.levelno >= logging.WARNING]


async def stream(_):
    async def pieces():
        for number in range(300):
            yield bytes(1000)
            if number % 50 == 0:
                await asyncio.sleep(0)

    return StreamingResponse(pieces())


async def answer_at_length(_):
    return PlainTextResponse("x" * LARGE_BYTES)


async def answer_never(_):
    await asyncio.Event().wait()


@asynccontextmanager
async def beside(app, bounds):
    """Serve, and give the server, its work and its port; what is in the loop outlives them."""
    listening = listen_on(Address("127.0.0.1", 0), "--listen")
    server = BoundedServer(app, bounds)
    serving = asyncio.create_task(server.serve([listening]))
    await server.wait_begun()
    with listening:
        yield server, serving, listening.getsockname()


def test_a_client_that_resets_its_connection_after_an_answer_leaves_nothing_in_memory():
    async def run():
        async with served(answering(), Bounds()) as connected:
            for _ in range(20):
                reader, writer = await connected(ASKED)
                await head_of(reader)
                await reader.readline()
                reset(writer)
            last, _ = await connected(ASKED)
            await head_of(last)
            gc.collect()
            return sum(isinstance(each, BoundedProtocol) for each in gc.get_objects())

    assert asyncio.run(run()) == 1


def test_a_client_that_goes_away_during_a_long_answer_is_no_news(caplog):
    async def run():
        async with served(answering(Route("/stream", stream)), Bounds()) as connected:
            for _ in range(10):
                reader, writer = await connected(asked_for("/stream"))
                await reader.read(10)
                reset(writer)
            last, _ = await connected(ASKED)
            return await head_of(last)

    assert asyncio.run(run()).startswith("HTTP/1.1 200 ")
    assert said_in(caplog) == []


def test_a_client_whose_body_breaks_off_is_no_news(caplog):
    async def run():
        async with served(answering(), Bounds()) as connected:
            reader, _ = await connected(BROKEN)
            refused = await reader.read()
            await asyncio.sleep(0.1)
            return refused

    assert asyncio.run(run()).startswith(b"HTTP/1.1 400 ")
    assert said_in(caplog) == []


def test_a_bug_of_the_application_is_news_after_another_server_has_ended_too(caplog):
    async def fail(_):
        raise ZeroDivisionError

    async def run():
        async with served(answering(Route("/fail", fail)), Bounds()) as connected:
            async with served(answering(), Bounds()):
                pass
            reader, _ = await connected(asked_for("/fail"))
            return await head_of(reader)

    assert asyncio.run(run()).startswith("HTTP/1.1 500 ")
    assert said_in(caplog) == ["Exception in ASGI application\n"]


@pytest.mark.parametrize("path", ["/long", "/never"])
def test_no_connection_outlives_its_server(path, caplog):
    app = answering(Route("/long", answer_at_length), Route("/never", answer_never))

    async def run():
        async with beside(app, Bounds(stop_s=1)) as (server, serving, where):
            reader, writer = await asyncio.open_connection(*where, limit=1000)
            writer.write(asked_for(path))
            await asyncio.sleep(0.2)
            server.tell_to_stop()
            await serving
            read = 0
            with suppress(ConnectionError):
                async with asyncio.timeout(20):
                    while piece := await reader.read(1 << 20):
                        read += len(piece)
            writer.close()
            return read

    assert asyncio.run(run()) < LARGE_BYTES
    assert said_in(caplog) == []


def test_an_application_that_is_given_up_at_the_stop_may_say_so():
    async def give_up(_):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return PlainTextResponse("stopping\n", 503)

    async def run():
        app = Starlette(routes=[Route("/", give_up)])
        async with beside(app, Bounds(stop_s=1)) as (server, serving, where):
            reader, writer = await asyncio.open_connection(*where)
            writer.write(ASKED)
            await asyncio.sleep(0.1)
            server.tell_to_stop()
            await serving
            said = await reader.read()
            writer.close()
            return said

    assert asyncio.run(run()).startswith(b"HTTP/1.1 503 ")


def test_a_server_whose_work_is_cancelled_ends_what_it_has_and_accepts_no_more():
    async def run():
        async with beside(answering(), Bounds()) as (_, serving, where):
            reader, resting = await asyncio.open_connection(*where)
            resting.write(ASKED)
            await head_of(reader)
            await reader.readline()
            serving.cancel()
            await asyncio.wait([serving])
            ended = await is_ended(reader)
            late, asking = await asyncio.open_connection(*where)
            asking.write(ASKED)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    return ended, await late.read(10)
            for writer in (resting, asking):
                writer.close()
            return ended, b""

    assert asyncio.run(run()) == (True, b"")


def test_a_newcomer_for_whom_there_is_no_room_at_the_stop_is_no_error(caplog):
    async def run():
        app = answering(Route("/never", answer_never))
        async with beside(app, Bounds(most_open=1, stop_s=1)) as (server, serving, where):
            _, writer = await asyncio.open_connection(*where)
            writer.write(asked_for("/never"))
            await asyncio.sleep(0.1)
            with socket.create_connection(where):
                await asyncio.sleep(0)  # accepted, but not made yet
                server.tell_to_stop()
                await serving
            writer.close()

    with capture_logs():
        asyncio.run(run())

    assert said_in(caplog) == []


def test_who_waits_for_a_server_that_does_not_begin_is_told():
    @asynccontextmanager
    async def fail(_):
        raise RuntimeError("no")
        yield

    async def run():
        with listen_on(Address("127.0.0.1", 0), "--listen") as listening:
            server = BoundedServer(Starlette(lifespan=fail), Bounds(), has_lifespan=True)
            serving = asyncio.create_task(server.serve([listening]))
            async with asyncio.timeout(20):
                with pytest.raises(MachineError, match="did not start"):
                    await server.wait_begun()
            return (await asyncio.gather(serving, return_exceptions=True))[0]

    assert isinstance(asyncio.run(run()), MachineError)
