"""Every fault of a successor at every stage: what runs afterwards, and that nothing is left.

Faults: it ends, it hangs, it talks nonsense, it is killed. Stages: it loads, it waits at its gate,
its gate was opened, it is attached. Between them, an agent that is itself killed.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.lifecycle import Scheduler
from tests.core.scheduler.preflight.rights import can_gate
from tests.patience import PATIENCE_S

pytestmark = can_gate
PANIC = "thread 'main' panicked\n"
STALL = "Error: EXIT: runnable task stall (taskset[248] failed to run for 5.508s)\n"


OLD_ENGINE_UNTOUCHED = 1
ROLLED_BACK = 1
SWAPPED = 2


def signal_next(number: signal.Signals) -> Callable[[Any, Scheduler], None]:
    def send(_world: Any, scheduler: Scheduler) -> None:
        os.kill(scheduler.engine_pids[-1], number)

    return send


def pass_time(seconds: float) -> Callable[[Any, Scheduler], None]:
    def wait(world: Any, scheduler: Scheduler) -> None:
        world.now += seconds
        scheduler.step(world.now)

    return wait


def both(*acts: Callable[[Any, Scheduler], None]) -> Callable[[Any, Scheduler], None]:
    def act(world: Any, scheduler: Scheduler) -> None:
        for each in acts:
            each(world, scheduler)

    return act


def nothing(_world: Any, _scheduler: Scheduler) -> None:
    return


LOADING = {
    "exit": ({"die": PANIC, "exit": 101}, nothing, "panic"),
    "hang": ({"hang": True}, pass_time(61), "start_timeout"),
    "kill": ({"hang": True}, signal_next(signal.SIGKILL), "killed"),
    "stop": ({"hang": True}, both(signal_next(signal.SIGSTOP), pass_time(61)), "start_timeout"),
    "term": ({"hang": True}, signal_next(signal.SIGTERM), "terminated"),
}


@pytest.mark.parametrize("fault", LOADING)
def test_a_fault_while_it_loads_leaves_the_old_engine_untouched(world, plan, fault):
    script, act, kind = LOADING[fault]
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.script(**script)
    world.change(scheduler, plan("b"))

    act(world, scheduler)
    world.drive(scheduler, lambda: scheduler.counters.swap_failures)

    assert scheduler.counters.swap_failures == {kind: 1}
    assert (scheduler.status.mode, scheduler.engine_pids) == ("enforcing", (old,))
    assert world.node.state == "enabled"
    assert not scheduler.counters.ejections
    expect_nothing_left(world, scheduler, generation=OLD_ENGINE_UNTOUCHED)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE], ids=os.strerror)
def test_no_room_for_a_gate_leaves_the_old_engine_and_later_swaps_untouched(
    world, plan, monkeypatch, number
):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    with monkeypatch.context() as full:
        full.setattr(os, "mkfifo", refuse)
        world.change(scheduler, plan("b"))
        world.drive(scheduler, lambda: scheduler.counters.swap_failures)

    assert scheduler.counters.swap_failures == {"launch_failed": 1}
    assert (scheduler.status.mode, scheduler.engine_pids) == ("enforcing", (old,))
    world.now += 600
    world.change(scheduler, plan("c"))
    world.settle(scheduler, "enforcing", generation=3)
    assert scheduler.counters.swaps == {"warm": 1}


def test_nonsense_while_it_loads_changes_nothing(world, plan):
    scheduler = world.enforce(plan("a"))
    world.script(chatty_bytes=2_000_000)

    world.change(scheduler, plan("b"))
    world.settle(scheduler, "enforcing", generation=SWAPPED)

    expect_nothing_left(world, scheduler, generation=SWAPPED)


WAITING = {
    "exit": (signal_next(signal.SIGTERM), nothing, "terminated"),
    "kill": (signal_next(signal.SIGKILL), nothing, "killed"),
    "hang": (signal_next(signal.SIGSTOP), pass_time(61), "start_timeout"),
}


@pytest.mark.parametrize("fault", WAITING)
def test_a_fault_at_the_gate_brings_the_old_plan_back(world, plan, fault):
    act, later, kind = WAITING[fault]
    world.script(stop_s=0.15)
    scheduler = world.enforce(plan("a"))
    world.script()
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "waits for the kernel" in scheduler.status.detail)

    act(world, scheduler)
    world.drive(scheduler, lambda: world.node.state == "disabled")
    for _ in range(5):
        scheduler.step(world.now)
    later(world, scheduler)
    world.drive(scheduler, lambda: scheduler.counters.reloads["rollback"])
    world.settle(scheduler, "enforcing", generation=ROLLED_BACK)

    assert scheduler.counters.swap_failures == {kind: 1}
    assert "generation 2 did not attach" in scheduler.status.detail
    expect_nothing_left(world, scheduler, generation=ROLLED_BACK)


OPENED = {
    "exit": ({"attach_die": PANIC}, nothing, "unknown"),
    "hang": ({"attach_hang": True}, pass_time(61), "start_timeout"),
    "kill": ({"attach_hang": True}, signal_next(signal.SIGKILL), "killed"),
    "garbage": ({"stats": "garbage", "garbage_if_layer": "b"}, pass_time(61), "start_timeout"),
}


@pytest.mark.parametrize("fault", OPENED)
def test_a_fault_after_the_gate_was_opened_brings_the_old_plan_back(world, plan, fault):
    script, act, kind = OPENED[fault]
    scheduler = world.enforce(plan("a"))
    world.script(attach_if_layer="b", **script)
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: scheduler.counters.reloads["plan"])
    world.drive(scheduler, lambda: len(scheduler.engine_pids) == 1)

    act(world, scheduler)
    world.drive(scheduler, lambda: scheduler.counters.reloads["rollback"])
    world.script()
    world.settle(scheduler, "enforcing", generation=ROLLED_BACK)

    assert scheduler.counters.swap_failures == {kind: 1}
    assert scheduler.counters.ejections == {kind: 1}
    expect_nothing_left(world, scheduler, generation=ROLLED_BACK)


def throw_out(world: Any, _scheduler: Scheduler) -> None:
    world.trigger.write_text(STALL)


def starve_of_answers(world: Any, scheduler: Scheduler) -> None:
    for _ in range(30):
        world.now += 2.5
        scheduler.step(world.now)
        time.sleep(0.002)


def garble(world: Any, scheduler: Scheduler) -> None:
    world.garble.touch()
    starve_of_answers(world, scheduler)


ATTACHED = {
    "exit": (throw_out, "stall"),
    "kill": (signal_next(signal.SIGKILL), "killed"),
    "hang": (both(signal_next(signal.SIGSTOP), starve_of_answers), "hung"),
    "garbage": (garble, "hung"),
}


@pytest.mark.parametrize("fault", ATTACHED)
def test_a_fault_after_it_attached_is_waited_out_and_it_comes_back(world, plan, fault):
    act, kind = ATTACHED[fault]
    scheduler = world.enforce(plan("a"), backoff_s=10.0)
    world.change(scheduler, plan("b"))
    world.settle(scheduler, "enforcing", generation=SWAPPED)
    world.drive(scheduler, lambda: len(scheduler.engine_pids) == 1)

    act(world, scheduler)
    world.settle(scheduler, "safe_mode", "ejected")
    world.now += 10.1  # an engine that hears no SIGTERM is killed after that
    world.drive(scheduler, lambda: not scheduler.engine_pids)
    world.trigger.unlink(missing_ok=True)
    world.garble.unlink(missing_ok=True)
    world.now += 20
    world.settle(scheduler, "enforcing", generation=SWAPPED)

    assert scheduler.counters.ejections == {kind: 1}
    assert not scheduler.counters.swap_failures
    expect_nothing_left(world, scheduler, generation=SWAPPED)


def expect_nothing_left(world: Any, scheduler: Scheduler, *, generation: int) -> None:
    """Hold processes, files and mounts against what one engine of that generation needs."""
    assert scheduler.status.generation == generation
    world.drive(scheduler, lambda: len(scheduler.engine_pids) == 1)
    run = world.node.roots.run
    assert {one.name for one in run.iterdir()} == {"engine.pid", f"engine-{generation}.json"}
    assert str(world.node.folder) not in Path("/proc/self/mountinfo").read_text()
    # The fake engine's watcher counts as one until it has closed its standard input.
    world.drive(scheduler, lambda: engines_of(world.node.roots) == {scheduler.engine_pid})


def engines_of(roots: Roots) -> set[int]:
    """Find every living process that was given a configuration below this node's folder."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_dead = (folder / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            continue
        is_engine = any(word.startswith(f"f:{roots.run}/".encode()) for word in words)
        # The fake engine's own watcher has no standard input any more.
        if is_engine and not is_dead and (folder / "fd/0").exists():
            found.add(int(folder.name))
    return found


AGENT = """
import json, os, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.core.scheduler.conftest import Node, World, plan_of
world = World(Node(Path(sys.argv[2])))
scheduler = world.enforce(plan_of("a"))
world.script(**json.loads(sys.argv[3]))
world.change(scheduler, plan_of("b"))
world.drive(scheduler, lambda: sys.argv[4] in scheduler.status.detail)
print(json.dumps(scheduler.engine_pids), flush=True)
time.sleep(600)
"""
MOMENTS = {
    "loading": ({"hang": True}, "loads beside it"),
    "waiting": ({}, "waits for the kernel"),
    "opened": ({"attach_hang": True, "attach_if_layer": "b"}, "attaching"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_agent_that_is_killed_takes_both_engines_along_and_the_next_one_starts_clean(
    world, plan, tmp_path_factory, moment
):
    script, words = MOMENTS[moment]
    folder = tmp_path_factory.mktemp("killed")
    agent = subprocess.Popen(
        [
            *(sys.executable, "-c", AGENT),
            *(str(Path(__file__).parents[4]), str(folder), json.dumps(script), words),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    with agent:
        assert agent.stdout is not None
        told = next(line for line in agent.stdout if line.startswith("["))
        agent.kill()

    roots = Roots(run=folder / "run")
    limit = time.monotonic() + PATIENCE_S
    while engines_of(roots) or (folder / "state").read_text().strip() != "disabled":
        assert time.monotonic() < limit, (told, engines_of(roots))
        time.sleep(0.01)
    for leftover in (folder / "run").iterdir():  # what a dead agent leaves, into this one's way
        world.node.roots.run.mkdir(mode=0o700, exist_ok=True)
        leftover.rename(world.node.roots.run / leftover.name)
    scheduler = world.enforce(plan("a"))
    expect_nothing_left(world, scheduler, generation=1)
