"""What answers of servers take that nobody reads."""

import asyncio

import pytest

from temper_serving.turns import BusyError
from temper_serving.unsent import MOST_BYTES, Unsent

LARGE = MOST_BYTES // 4


async def read_nothing(unsent, sizes):
    """Return how many answers of *sizes* are sent, of which no reader reads a byte, and held."""
    is_read, sending = asyncio.Event(), []

    async def send(message):
        if message["type"] != "http.response.start":
            await is_read.wait()

    for size in sizes:
        try:
            response = unsent.response(bytes(size), "text/plain")
        except BusyError:
            continue
        sending.append(asyncio.create_task(response({"type": "http"}, None, send)))
        await asyncio.sleep(0)
    held = unsent.held_bytes
    sending[0].cancel()
    is_read.set()
    await asyncio.wait(sending)
    return len(sending), held


def test_large_answers_that_are_not_read_are_refused_beyond_their_bound():
    unsent = Unsent()

    sent, held = asyncio.run(read_nothing(unsent, [*[LARGE] * 5, 1000]))

    assert sent == 5
    assert held == MOST_BYTES
    assert unsent.held_bytes == 0


def test_one_network_holds_a_share_of_what_the_others_leave():
    unsent = Unsent(share=0.5)
    for _ in range(2):
        unsent.response(bytes(LARGE), "text/plain", "10.0.0.1")

    with pytest.raises(BusyError, match="too many large answers at once"):
        unsent.response(bytes(LARGE), "text/plain", "10.0.0.1")

    unsent.response(bytes(LARGE), "text/plain", "10.0.0.2")
    with pytest.raises(BusyError):
        unsent.response(bytes(LARGE), "text/plain", "10.0.0.3")
    unsent.response(bytes(1000), "text/plain", "10.0.0.3")


def test_the_answer_is_held_until_the_server_has_sent_it():
    """uvicorn returns from a part at once, whether its reader reads or not."""
    unsent, seen = Unsent(), []

    async def send(message):
        seen.append((message.get("more_body"), len(message.get("body", b"")), unsent.held_bytes))

    response = unsent.response(bytes(LARGE), "text/plain")
    asyncio.run(response({"type": "http"}, None, send))

    assert seen == [(None, 0, LARGE), (True, LARGE, LARGE), (False, 0, LARGE)]
    assert unsent.held_bytes == 0
