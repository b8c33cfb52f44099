"""Turns of costly requests: one at a time, fair between networks, bounded."""

import asyncio
import itertools
import time

import pytest

from temper_serving.turns import BusyError, QuestionTurns, Turns


def test_networks_take_turns_however_many_one_of_them_asks_for():
    order = []

    async def ask(turns, client):
        async with turns.turn(client):
            order.append(client)

    async def run():
        turns = Turns()
        greedy = [ask(turns, "10.0.0.1") for _ in range(8)]
        await asyncio.gather(*greedy, ask(turns, "10.0.0.2"), ask(turns, "10.0.0.3"))

    asyncio.run(run())

    assert order[:4] == ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert len(order) == 10


def test_other_tasks_run_between_two_turns():
    seen = []

    async def ask(turns):
        async with turns.turn("10.0.0.1"):
            seen.append("turn")
            await asyncio.sleep(0)

    async def probe():
        for _ in range(30):
            seen.append("probe")
            await asyncio.sleep(0)

    async def run():
        turns = Turns()
        await asyncio.gather(probe(), *(ask(turns) for _ in range(4)))

    asyncio.run(run())

    turns_at = [place for place, what in enumerate(seen) if what == "turn"]
    assert all(later - earlier > 1 for earlier, later in itertools.pairwise(turns_at))


@pytest.mark.parametrize(
    ("bounds", "clients"),
    [({"most_of_client": 2}, ["10.0.0.1"] * 6), ({"most_waiting": 2}, list("abcdef"))],
)
def test_too_many_are_refused(bounds, clients):
    async def ask(turns, client):
        async with turns.turn(client):
            await asyncio.sleep(0.01)

    async def run():
        turns = Turns(**bounds)
        asked = [ask(turns, client) for client in clients]
        return await asyncio.gather(*asked, return_exceptions=True)

    results = asyncio.run(run())

    assert results[:3] == [None] * 3
    assert [type(result) for result in results[3:]] == [BusyError] * 3


def test_a_client_that_goes_away_holds_nobody_up():
    async def run():
        turns, release = Turns(), asyncio.Event()

        async def hold():
            async with turns.turn("10.0.0.1"):
                await release.wait()

        async def ask():
            async with turns.turn("10.0.0.2"):
                return "answered"

        holding = asyncio.create_task(hold())
        await asyncio.sleep(0)
        gone, left = asyncio.create_task(ask()), asyncio.create_task(ask())
        await asyncio.sleep(0)
        gone.cancel()
        release.set()
        await holding
        return await asyncio.wait_for(left, 60)

    assert asyncio.run(run()) == "answered"


def test_after_a_turn_the_loop_rests_for_a_multiple_of_it():
    async def run():
        turns, began = Turns(rest=4.0), time.monotonic()
        async with turns.turn("10.0.0.1"):
            time.sleep(0.05)  # noqa: ASYNC251 - as a computation takes the event loop
        first = time.monotonic()
        async with turns.turn("10.0.0.1"):
            return first - began, time.monotonic() - first

    took_s, rested_s = asyncio.run(run())

    assert rested_s >= 3.5 * took_s


def test_of_each_size_one_question_is_held_and_none_waits_for_the_other_size():
    held = {"small": 0, "large": 0}
    most, done = dict(held), []

    async def ask(turns, size, awaits):
        async with turns.turn("10.0.0.1", is_small=size == "small"):
            held[size] += 1
            most[size] = max(most[size], held[size])
            for _ in range(awaits):
                await asyncio.sleep(0)
            held[size] -= 1
        done.append(size)

    async def run():
        turns = QuestionTurns()
        large = [ask(turns, "large", 50) for _ in range(4)]
        await asyncio.gather(*large, *(ask(turns, "small", 0) for _ in range(4)))

    asyncio.run(run())

    assert most == {"small": 1, "large": 1}
    assert done[:4] == ["small"] * 4
