"""Who may take up a server's memory by bodies: clients that mean no good."""

import asyncio
import time
from contextlib import suppress

from starlette.responses import PlainTextResponse
from starlette.routing import Route

from temper_core import Bounds
from temper_serving.bodies import SMALL_BYTES, BodyBudget, RefusedBodyError
from tests.core.http.dialling import answering, head_of, served
from tests.patience import PATIENCE_S

MOST_BYTES = 300_000


def taking(bodies):
    """Return an application that says how large a body was."""

    async def take(request):
        try:
            return PlainTextResponse(f"{len(await bodies.read(request))}\n")
        except RefusedBodyError as error:
            return PlainTextResponse(str(error), error.status, {"connection": "close"})

    return answering(Route("/", take, methods=["POST"]))


async def sent(connected, size, *, rest=0, address="127.0.0.1"):
    """Send a body of *size* but for the *rest* of it, from *address*."""
    asking = f"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {size}\r\n\r\n".encode()
    return await connected(asking + b" " * (size - rest), local_addr=(address, 0))


def until(question):
    """Ask *question* until it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not question():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


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


def test_a_client_that_fills_the_bound_keeps_no_other_client_out():
    bodies = BodyBudget(MOST_BYTES, within_s=30, most_held_bytes=MOST_BYTES)

    async def run():
        async with served(taking(bodies), Bounds()) as connected:
            held = [
                await sent(connected, size, rest=1, address="127.0.0.2")
                for size in (200_000, 150_000)
            ]
            await asyncio.to_thread(until, lambda: bodies.held_bytes == 349_998 - 2 * SMALL_BYTES)
            other, _ = await sent(connected, 250_000)
            head = await head_of(other)
            given_up = await head_of(held[0][0])
            held[1][1].write(b" ")
            return head, given_up, await head_of(held[1][0])

    answered, given_up, kept = asyncio.run(run())

    assert answered.startswith("HTTP/1.1 200 ")
    assert given_up.startswith("HTTP/1.1 503 ")
    assert kept.startswith("HTTP/1.1 200 ")
    assert bodies.held_bytes == 0


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
