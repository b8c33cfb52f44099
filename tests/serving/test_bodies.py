"""Who may take up a server's memory by bodies: clients that mean no good."""

import asyncio
from contextlib import suppress

from starlette.responses import PlainTextResponse
from starlette.routing import Route

from temper_core import Bounds
from temper_serving.bodies import BodyBudget, RefusedBodyError
from tests.core.http.dialling import answering, head_of, served

MOST_BYTES = 300_000


def taking(bodies):
    """Return an application that says how large a body was."""

    async def take(request):
        try:
            return PlainTextResponse(f"{len(await bodies.read(request))}\n")
        except RefusedBodyError as error:
            return PlainTextResponse(str(error), error.status, {"connection": "close"})

    return answering(Route("/", take, methods=["POST"]))


async def sent(connected, size, *, rest=0):
    """Send a body of *size* but for the *rest* of it."""
    asking = f"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {size}\r\n\r\n".encode()
    return await connected(asking + b" " * (size - rest))


def test_large_bodies_together_are_bounded_and_small_ones_always_pass():
    bodies = BodyBudget(MOST_BYTES, within_s=30, most_held_bytes=MOST_BYTES)

    async def run():
        async with served(taking(bodies), Bounds()) as connected:
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
    bodies = BodyBudget(MOST_BYTES, within_s=0.3, most_held_bytes=MOST_BYTES)

    async def run():
        async with served(taking(bodies), Bounds()) as connected:
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


def test_a_body_that_waits_for_its_turn_counts_until_its_turn_is_over():
    bodies = BodyBudget(MOST_BYTES, within_s=30, most_held_bytes=MOST_BYTES)
    is_read, turn = asyncio.Event(), asyncio.Event()

    async def take(request):
        try:
            async with bodies.held(request) as body:
                is_read.set()
                await turn.wait()
                return PlainTextResponse(f"{len(body)}\n")
        except RefusedBodyError as error:
            return PlainTextResponse(str(error), error.status, {"connection": "close"})

    async def run():
        application = answering(Route("/", take, methods=["POST"]))
        async with served(application, Bounds()) as connected:
            waiting, _ = await sent(connected, 250_000)
            await is_read.wait()
            refused, _ = await sent(connected, 250_000)
            head = await head_of(refused)
            turn.set()
            return head, await head_of(waiting)

    refused, answered = asyncio.run(run())

    assert refused.startswith("HTTP/1.1 503 ")
    assert answered.startswith("HTTP/1.1 200 ")
    assert bodies.held_bytes == 0
