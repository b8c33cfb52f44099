"""Calls in lanes, where threads run out."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

from temper_core import MachineError
from temper_core.server.lanes import Lanes
from temper_core.server.table import Lane

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
