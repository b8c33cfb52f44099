"""Threads that do not follow their hints, as recorded by something that is like the engine."""

import os
import struct
import time
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.bpf.skeleton import Skeleton
from temper_core.steering.engine_layers import RunningEngine
from temper_core.steering.steerer import SOON_S
from tests.core.steering.user_space.plans import at, rule, steered

OBJECT = Path(__file__).parents[1] / "objects/engine_like.bpfl"
LAYERS = ("open", "high", "system")
ENGINE = RunningEngine(os.getpid(), LAYERS, ())


@pytest.fixture
def place(bpf_allowed):  # noqa: ARG001 - skips where BPF cannot be used
    """Have every thread of a process recorded in a layer, from now on."""
    with Skeleton.load(OBJECT.read_bytes()) as loaded:

        def put(pid, layer):
            order = struct.pack("=II", pid, LAYERS.index(layer))
            maps.update(loaded.maps["orders"], bytes(4), order)
            loaded.run("place")

        yield put


@pytest.fixture
def spinning(cgroups, workload):
    """A pod's process with a thread that never sleeps, and the plan that wants it in high."""
    pod, process = cgroups.make("pod"), workload()
    process.move_to(pod)
    process.thread("spin", "spin")
    return process, steered(at(cgroups.path(pod), rule("high"), pod="shop/web"))


def turn_while_it_runs(steerer, times):
    waits = []
    for _ in range(times):
        waits.append(steerer.turn(time.monotonic(), ENGINE))
        time.sleep(0.05)
    return waits


def nice_values(process):
    tasks = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
    return {tid: os.getpriority(os.PRIO_PROCESS, tid) for tid in tasks}


def test_the_engines_own_record_is_told_by_name(steerer, spinning, place):
    process, plan = spinning
    place(process.pid, "high")
    steerer.apply(plan)

    steerer.turn(time.monotonic(), ENGINE)

    truth = steerer.truth()[process.pid]
    assert (truth.layer, truth.hinted, truth.expected) == ("high", "high", "high")
    assert (steerer.state.astray, steerer.state.reason) == (0, "")


def test_a_thread_that_runs_on_elsewhere_is_kicked_and_keeps_its_nice_value(
    steerer, spinning, place
):
    process, plan = spinning
    place(process.pid, "open")
    os.setpriority(os.PRIO_PROCESS, process.pid, 13)
    before = nice_values(process)
    steerer.apply(plan)

    waits = turn_while_it_runs(steerer, 6)

    assert waits[0] == SOON_S
    assert steerer.state.astray >= 2
    assert steerer.state.kicked >= 1
    assert len(set(before.values())) == 2
    assert nice_values(process) == before


def test_a_thread_that_has_followed_is_left_alone(steerer, spinning, place):
    process, plan = spinning
    place(process.pid, "open")
    steerer.apply(plan)
    turn_while_it_runs(steerer, 2)

    place(process.pid, "high")
    turn_while_it_runs(steerer, 6)

    assert steerer.state.astray == 0
    assert steerer.state.kicked == 0


def test_a_thread_that_never_sleeps_does_not_keep_the_agent_from_sleeping(steerer, spinning, place):
    process, plan = spinning
    place(process.pid, "open")
    steerer.apply(plan)

    waits = turn_while_it_runs(steerer, 8)

    assert waits[-1] == 1.0
    assert steerer.state.kicked < 8


def test_another_engine_has_its_own_order_of_layers(steerer, spinning, place):
    process, plan = spinning
    place(process.pid, "open")
    steerer.apply(plan)
    steerer.turn(time.monotonic(), ENGINE)
    before = steerer.state.astray

    swapped = RunningEngine(os.getpid(), ("high", "open", "system"))
    steerer.turn(time.monotonic(), swapped)

    assert before >= 2
    assert steerer.truth()[process.pid].layer == "high"
    assert steerer.state.astray == 0
