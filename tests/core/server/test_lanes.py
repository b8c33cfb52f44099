"""Calls in lanes, where threads run out."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager

import pytest

from temper_core import MachineError
from temper_core.server.lanes import (
    MOST_OF_NETWORK,
    MOST_WITHDRAWN,
    MOST_WITHDRAWN_OF_NETWORK,
    Lanes,
)
from temper_core.server.table import Lane
from tests.patience import PATIENCE_S

LANE = Lane("acting", 1)


@pytest.fixture
def lanes():
    lanes = Lanes()
    yield lanes
    lanes.close()


@pytest.fixture
def without_threads(monkeypatch):
    """What Python does when clone(2) fails with EAGAIN."""

    @contextmanager
    def fails():
        def start(_):
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            yield

    return fails


def test_a_call_that_was_refused_for_want_of_a_thread_never_runs(lanes, without_threads):
    done = []

    with without_threads(), pytest.raises(MachineError, match="nothing was done"):
        asyncio.run(lanes.run(LANE, lambda: done.append("refused")))
    asyncio.run(lanes.run(LANE, lambda: done.append("answered")))

    assert done == ["answered"]


def test_a_lane_that_was_started_needs_no_further_thread(lanes, without_threads):
    lanes.start(LANE)

    with without_threads():
        answer = asyncio.run(lanes.run(LANE, lambda: "answered"))

    assert answer == "answered"


def test_the_kill_switch_works_without_threads(start, view, without_threads):
    agent = start()

    with without_threads():
        answer = agent.unix.put("/safe-mode", json={"requested": True, "requester": "ops"})

    assert answer.status_code == 200
    assert "ops" in view.requests


def test_one_network_leaves_room_in_a_lane_to_others(lanes):
    release = threading.Event()

    async def run():
        waiting = [
            asyncio.ensure_future(lanes.run(LANE, release.wait, "10.0.0.1"))
            for _ in range(MOST_OF_NETWORK + 5)
        ]
        other = asyncio.ensure_future(lanes.run(LANE, lambda: "answered", "10.0.0.2"))
        await asyncio.sleep(0)
        release.set()
        return await asyncio.gather(*waiting, other, return_exceptions=True)

    *greedy, other = asyncio.run(run())

    assert sum(isinstance(each, MachineError) for each in greedy) == 5
    assert other == "answered"


def test_a_call_whose_client_left_before_its_turn_never_runs_and_gives_its_place_away(lanes):
    release, done = threading.Event(), []

    async def run():
        left = asyncio.Event()
        running = asyncio.ensure_future(lanes.run(LANE, release.wait, "10.0.0.1"))
        queued = [
            asyncio.ensure_future(lanes.run(LANE, lambda: done.append(1), "10.0.0.1", left.wait))
            for _ in range(MOST_OF_NETWORK - 1)
        ]
        await asyncio.sleep(0)
        left.set()
        refused = await asyncio.gather(*queued, return_exceptions=True)
        later = asyncio.ensure_future(lanes.run(LANE, lambda: "answered", "10.0.0.1"))
        release.set()
        return refused, await running, await later

    refused, _, later = asyncio.run(run())

    assert {str(each) for each in refused} == {"the client disconnected before its turn"}
    assert (later, done) == ("answered", [])


def test_a_call_that_has_begun_is_waited_for_though_its_client_left(lanes):
    first_ends, begun, release = threading.Event(), threading.Event(), threading.Event()

    def call():
        begun.set()
        release.wait()
        return "answered"

    async def run():
        left = asyncio.Event()
        first = asyncio.ensure_future(lanes.run(LANE, first_ends.wait))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(lanes.run(LANE, call, leaving=left.wait))
        await asyncio.sleep(0)
        first_ends.set()
        await asyncio.to_thread(begun.wait)
        left.set()
        await asyncio.sleep(0.01)
        release.set()
        return await first, await second

    assert asyncio.run(run()) == (True, "answered")


def test_withdrawn_calls_behind_a_call_that_hangs_are_bounded(lanes):
    release = threading.Event()

    async def gone():
        return None

    async def run():
        hanging = asyncio.ensure_future(lanes.run(LANE, release.wait))
        await asyncio.sleep(0)
        calls = (lanes.run(LANE, int, leaving=gone) for _ in range(MOST_WITHDRAWN + 1))
        *withdrawn, refused = [str(*await asyncio.gather(c, return_exceptions=True)) for c in calls]
        release.set()
        await hanging
        return set(withdrawn), refused

    assert asyncio.run(run()) == (
        {"the client disconnected before its turn"},
        "too many requests of this kind are waiting; ask again later",
    )
    deadline = time.monotonic() + PATIENCE_S
    while lanes._pool(LANE).withdrawn and time.monotonic() < deadline:
        time.sleep(0.01)
    assert asyncio.run(lanes.run(LANE, lambda: "answered")) == "answered"


def test_withdrawn_calls_of_one_network_leave_room_to_others(lanes):
    release = threading.Event()

    async def gone():
        return None

    async def run():
        hanging = asyncio.ensure_future(lanes.run(LANE, release.wait))
        await asyncio.sleep(0)
        for _ in range(MOST_WITHDRAWN_OF_NETWORK):
            await asyncio.gather(lanes.run(LANE, int, "10.0.0.1", gone), return_exceptions=True)
        [refused] = await asyncio.gather(
            lanes.run(LANE, int, "10.0.0.1", gone), return_exceptions=True
        )
        other = asyncio.ensure_future(lanes.run(LANE, lambda: "answered", "10.0.0.2"))
        await asyncio.sleep(0)
        release.set()
        await hanging
        return str(refused), await other

    reason, answer = asyncio.run(run())

    assert reason == "too many requests of this kind are waiting; ask again later"
    assert answer == "answered"


def test_readers_that_left_keep_no_place_of_their_network(start, view):
    view.slow = threading.Event()
    agent = start()
    with ExitStack() as stack:
        for _ in range(MOST_OF_NETWORK):
            reader = stack.enter_context(agent.connect())
            reader.sendall(b"GET /explain HTTP/1.1\r\nhost: a\r\n\r\n")
        agent.tcp.get("/healthz")

    assert status_once_seen(agent, view) == 200


def status_once_seen(agent, view):
    """Ask until the agent has seen the others leave. A call that it takes waits for the event."""
    ends = time.monotonic() + PATIENCE_S
    with ThreadPoolExecutor(1) as asking:
        while True:
            answer = asking.submit(agent.tcp.get, "/explain")
            if answer not in wait([answer], timeout=1.0).done:
                view.slow.set()
            status = answer.result().status_code
            if status != 503 or time.monotonic() > ends:
                return status
            time.sleep(0.05)
