"""What answers of agents take that nobody reads."""

import asyncio

from temper_plugin_dashboard.fleet.asking import LARGEST_BYTES
from temper_plugin_dashboard.fleet.unsent import MOST_BYTES, Unsent


async def read_nothing(unsent, sizes):
    """Return the statuses of answers of *sizes*, of which no reader reads a byte."""
    is_read, statuses, sending = asyncio.Event(), [], []

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        else:
            await is_read.wait()

    for size in sizes:
        response = unsent.response(bytes(size), "text/plain")
        sending.append(asyncio.create_task(response({"type": "http"}, None, send)))
        await asyncio.sleep(0)
    held = unsent.held_bytes
    sending[0].cancel()
    is_read.set()
    await asyncio.wait(sending)
    return statuses, held


def test_large_answers_that_are_not_read_are_refused_beyond_their_bound():
    unsent, large = Unsent(), LARGEST_BYTES

    statuses, held = asyncio.run(read_nothing(unsent, [*[large] * 5, 1000]))

    assert statuses == [200, 200, 200, 200, 503, 200]
    assert held == MOST_BYTES
    assert unsent.held_bytes == 0
