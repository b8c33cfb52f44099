"""Who may take up a server's connections, its memory and its time: clients that mean no good."""

import asyncio
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from temper_core import InputError
from temper_plugin_density.overcommit import certificates, material
from temper_plugin_density.overcommit.presenting import present, server_context
from temper_plugin_density.serving.addresses import Address
from temper_plugin_density.serving.bodies import Bodies, RefusedBodyError
from temper_plugin_density.serving.connections import Listener, Patience

BRISK = Patience(handshake_s=0.2, head_s=0.2, most_connections=4)
CALM = Patience(most_connections=4)
MOST_BYTES = 300_000
ASKED = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


async def answer(_):
    return PlainTextResponse("it answers\n")


def taking(bodies):
    """Return an application that says how large a body was."""

    async def take(request):
        try:
            return PlainTextResponse(f"{len(await bodies.read(request))}\n")
        except RefusedBodyError as error:
            return PlainTextResponse(str(error), error.status, {"connection": "close"})

    return Starlette(routes=[Route("/", answer), Route("/", take, methods=["POST"])])


class Dialling:
    """Connects to a port, and closes all of it in the end."""

    def __init__(self, port):
        self._port, self._writers = port, []

    async def __call__(self, said=b"", **tls):
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, **tls)
        self._writers.append(writer)
        writer.write(said)
        await writer.drain()
        return reader, writer

    async def close(self):
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()


@asynccontextmanager
async def served(patience, bodies=None, context=None):
    """Serve, and give what connects there."""
    listening = Address("127.0.0.1", 0).listen()
    app = taking(bodies or Bodies(MOST_BYTES))
    listener = Listener(app, context, patience=patience)
    serving = asyncio.create_task(listener.serve([listening]))
    connected = Dialling(listening.getsockname()[1])
    try:
        yield connected
    finally:
        await connected.close()
        listener.tell_to_stop()
        await serving


async def head_of(reader):
    return (await reader.readuntil(b"\r\n\r\n")).decode()


async def is_ended(reader):
    """Whether the other side ends the connection; a test that waits for ever fails by its limit."""
    try:
        async with asyncio.timeout(20):
            return await reader.read() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: a\r\n"])
def test_a_connection_that_never_asks_is_ended(said):
    async def run():
        async with served(BRISK) as connected:
            reader, _ = await connected(said)
            return await is_ended(reader)

    assert asyncio.run(run())


def test_a_head_that_drips_is_not_waited_for():
    async def run():
        async with served(BRISK) as connected:
            reader, writer = await connected()
            ended = asyncio.create_task(is_ended(reader))
            while not ended.done():
                writer.write(b"G")
                await asyncio.sleep(0.05)
            return ended.result()

    assert asyncio.run(run())


def test_a_connection_that_has_asked_may_not_drip_either():
    async def run():
        async with served(BRISK) as connected:
            reader, writer = await connected(ASKED)
            await head_of(reader)
            await reader.readline()
            writer.write(b"G")
            return await is_ended(reader)

    assert asyncio.run(run())


def test_a_handshake_that_never_begins_is_not_waited_for():
    context = server_context()
    made = material.made(material.Terms(frozenset({"127.0.0.1"})), datetime.now(UTC))
    present(context, made)
    trusting = ssl.create_default_context(cadata=certificates.written(made.authorities).decode())

    async def run():
        async with served(BRISK, context=context) as connected:
            silent, _ = await connected()
            ended = await is_ended(silent)
            reader, _ = await connected(ASKED, ssl=trusting)
            return ended, await head_of(reader)

    ended, head = asyncio.run(run())

    assert ended
    assert head.startswith("HTTP/1.1 200 ")


def test_handshakes_that_never_end_keep_nobody_from_theirs():
    few = Patience(most_handshakes=4)
    made = material.made(material.Terms(frozenset({"127.0.0.1"})), datetime.now(UTC))
    context = server_context()
    present(context, made)
    trusting = ssl.create_default_context(cadata=certificates.written(made.authorities).decode())

    async def run():
        async with served(few, context=context) as connected:
            silent = [await connected() for _ in range(20)]
            reader, _ = await connected(ASKED, ssl=trusting)
            return await head_of(reader), await is_ended(silent[0][0])

    head, ended = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert ended


def test_silent_connections_make_room_for_one_that_asks():
    async def run():
        async with served(CALM) as connected:
            silent = [await connected() for _ in range(20)]
            reader, _ = await connected(ASKED)
            head = await head_of(reader)
            return head, await is_ended(silent[0][0])

    head, ended = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert ended


def test_a_request_in_progress_makes_no_room_for_silent_ones():
    async def run():
        async with served(CALM) as connected:
            asking = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n"
            reader, writer = await connected(asking + b"12")
            for _ in range(20):
                await connected()
            writer.write(b"34")
            return await head_of(reader), await reader.readline()

    head, said = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert said == b"4\n"


async def sent(connected, size, *, rest=0):
    """Send a body of *size* but for the *rest* of it."""
    asking = f"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {size}\r\n\r\n".encode()
    return await connected(asking + b" " * (size - rest))


def test_large_bodies_together_are_bounded_and_small_ones_always_pass():
    bodies = Bodies(MOST_BYTES, within_s=30, most_held_bytes=MOST_BYTES)

    async def run():
        async with served(Patience(), bodies) as connected:
            held = [await sent(connected, 250_000, rest=1) for _ in range(2)]
            refused, _ = await asyncio.wait(
                [asyncio.create_task(head_of(reader)) for reader, _ in held],
                return_when=asyncio.FIRST_COMPLETED,
            )
            small, _ = await sent(connected, 60_000)
            await head_of(small)
            said = await small.readline()
            for _, writer in held:
                writer.write(b" ")
            return [each.result() for each in refused], said

    refused, said = asyncio.run(run())

    assert len(refused) == 1
    assert refused[0].startswith("HTTP/1.1 503 ")
    assert said == b"60000\n"


def test_what_was_held_is_free_again_however_the_body_ended():
    bodies = Bodies(MOST_BYTES, within_s=0.3, most_held_bytes=MOST_BYTES)

    async def run():
        async with served(Patience(), bodies) as connected:
            slow, _ = await sent(connected, 250_000, rest=1)
            said = await head_of(slow)
            _, gone = await sent(connected, 250_000, rest=1)
            gone.close()
            await gone.wait_closed()
            with suppress(ConnectionError):
                await sent(connected, MOST_BYTES + 1)
            reader, _ = await sent(connected, 60_000)
            await head_of(reader)
            reader, _ = await sent(connected, 60_000)
            return said, await head_of(reader)

    slow, last = asyncio.run(run())

    assert slow.startswith("HTTP/1.1 408 ")
    assert last.startswith("HTTP/1.1 200 ")
    assert bodies.held_bytes == 0


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("0.0.0.0:8443", "0.0.0.0", 8443), ("[::1]:80", "::1", 80), ("localhost:0", "localhost", 0)],
)
def test_an_address_is_a_host_and_a_port(text, host, port):
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", "8443", ":8443", "a:", "a:x", "a:65536", "::1:80", "a:٣"])
def test_what_is_no_address_is_named_with_its_option(text):
    with pytest.raises(InputError, match="--observe: must be an address and a port"):
        Address.parse(text, "--observe")


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_is_refused(text):
    with suppress(InputError):
        assert 0 <= Address.parse(text).port <= 65_535


def test_answers_are_not_held_back_until_the_last_one_was_acknowledged():
    with (
        Address("127.0.0.1", 0).listen() as listening,
        socket.create_connection(listening.getsockname()),
    ):
        listening.setblocking(True)
        accepted, _ = listening.accept()

        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
