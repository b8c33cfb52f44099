"""A server on a port of its own, and clients that mean no good."""

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from temper_core import Address, BoundedServer, listen_on

ASKED = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
PROBED = ASKED.replace(b"/ ", b"/healthz ")
ASKED_THEN = ASKED.replace(b"/ ", b"/then ")


async def answer(_):
    return PlainTextResponse("it answers\n")


async def take(request):
    return PlainTextResponse(f"{len(await request.body())}\n")


def answering_then(may_answer, *routes):
    """Return an application that answers ``ASKED_THEN`` no sooner than *may_answer* is set."""

    async def answer_then(request):
        await may_answer.wait()
        return await answer(request)

    return answering(Route("/then", answer_then), *routes)


def answering(*routes):
    """Return an application that answers, and what *routes* say."""
    own = [Route("/", answer), Route("/", take, methods=["POST"])]
    return Starlette(routes=[*routes, *own])


class Dialling:
    """Connects to a port, and closes all of it in the end."""

    def __init__(self, port):
        self._port, self._writers = port, []

    async def __call__(self, said=b"", **options):
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, **options)
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
async def served(app, bounds, **options):
    """Serve, and give what connects there."""
    listening = listen_on(Address("127.0.0.1", 0), "--listen")
    server = BoundedServer(app, bounds, **options)
    serving = asyncio.create_task(server.serve([listening]))
    connected = Dialling(listening.getsockname()[1])
    try:
        yield connected
    finally:
        await connected.close()
        server.tell_to_stop()
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
