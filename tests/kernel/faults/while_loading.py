"""Faults that need no attached engine: a stand-in hangs, crashes or babbles where it would load.

Between cases an agent runs whose engine is still loading, so the stock scheduler runs all of it.
This module has the engine's faults; those of its surroundings join the group from theirs.
"""

import os
import signal
import time
from pathlib import Path

from acting import (
    OPTIONS,
    STATE,
    another_plan,
    kill_engine,
    safe_mode,
    signal_engine,
    stop_in_order,
)
from catalogue import Group
from damage import (
    full,
    replaced,
    without,
)
from scene import Scene, claim
from temper_agent import ENGINE, temper

GROUP = Group("loading", home="reloading", order="hang")
fault = GROUP.fault

REQUESTS = STATE / "safe-mode-requests.json"


@fault("an engine that crashes while it loads is told with its last words")
def engine_crashes_in_load(scene: Scene) -> None:
    scene.ring("crash")
    scene.safe_on_stock("ejected", "exit code 70: nobody expected this")


@fault("an engine that panics while it loads is told as that")
def engine_panics_in_load(scene: Scene) -> None:
    scene.ring("panic")
    scene.safe_on_stock("ejected", "panicked")


@fault("an engine that dies of a bad address while it loads is tried again")
def engine_segfaults_in_load(scene: Scene) -> None:
    scene.ring("segv")
    scene.safe_on_stock("ejected", "exit code -11")


@fault("an engine that leaves while it loads as if it were done is not taken for attached")
def engine_leaves_in_load(scene: Scene) -> None:
    scene.ring("leave")
    scene.safe_on_stock("ejected", "exit 0")


@fault("an engine that says a megabyte of garbage and ends is told by its exit code")
def engine_babbles_in_load(scene: Scene) -> None:
    scene.ring("noise")
    scene.safe_on_stock("ejected", "exit code 3")


@fault("an engine that never stops talking fills neither the agent's memory nor its time")
def engine_floods_in_load(scene: Scene) -> None:
    agent = scene.agent
    before = resident_mib(agent.pid)
    scene.ring("flood")
    time.sleep(5)
    claim(agent.ask("/healthz").get("alive"), "the agent does not answer")
    grown = resident_mib(agent.pid) - before
    claim(grown < 8, f"the agent has grown by {grown} MiB")
    scene.safe_while_loading()
    kill_engine(scene)


@fault(
    "an engine that hangs while it loads is ended at its deadline",
    scheduler={"start_deadline_s": 12.0},
    takes_minutes=True,
)
def engine_hangs_in_load(scene: Scene) -> None:
    scene.strike()
    scene.safe_on_stock("ejected", "did not attach")


@fault(
    "an engine that is stopped while it loads is ended at its deadline",
    scheduler={"start_deadline_s": 12.0},
    takes_minutes=True,
)
def engine_stopped_in_load(scene: Scene) -> None:
    signal_engine(scene, signal.SIGSTOP)
    scene.safe_on_stock("ejected", "did not attach")


@fault(
    "an engine that is deaf to SIGTERM while it loads is gone at once when safe mode is asked for",
    takes_minutes=True,
)
def engine_deaf_in_load(scene: Scene) -> None:
    scene.ring("deaf")
    safe_mode("on")
    scene.safe_on_stock("requested", "fault")
    safe_mode("off")


@fault("an engine killed by somebody while it loads is told and tried again")
def engine_killed_in_load(scene: Scene) -> None:
    kill_engine(scene)
    scene.safe_on_stock("ejected", "the engine was killed by SIGKILL")


@fault("an engine that somebody ends by SIGTERM while it loads is told and tried again")
def engine_terminated_in_load(scene: Scene) -> None:
    signal_engine(scene, signal.SIGTERM)
    scene.safe_on_stock("ejected", "by a signal while it was loading")


@fault("a node whose engine is gone says so, and goes on when it is back")
def engine_missing(scene: Scene) -> None:
    with without(ENGINE):
        kill_engine(scene)
        scene.safe_on_stock("preflight", "engine: ")


@fault("a program of the engine's name that is none is not started")
def engine_is_something_else(scene: Scene) -> None:
    with replaced(ENGINE, "#!/bin/sh\necho something else\n"):
        kill_engine(scene)
        scene.safe_on_stock("preflight", "something else")


@fault("a plan that the verifier refuses is told as the plan's fault; another plan is tried")
def plan_refused(scene: Scene) -> None:
    scene.ring("refuse")
    scene.safe_on_stock("invalid_plan", "the verifier refused the plan")
    scene.order("hang")
    # the same plan is not tried again
    time.sleep(3)
    scene.safe_on_stock("invalid_plan")
    with another_plan(scene):
        scene.recover()


@fault(
    "a node whose engine fails again and again gives up, until somebody goes through safe mode",
    scheduler={"crash_budget": 3, "backoff_s": 0.2},
    takes_minutes=True,
)
def crash_budget_used_up(scene: Scene) -> None:
    scene.ring("crash")
    scene.safe_on_stock("crash_loop", "3 failures within an hour")
    scene.order("hang")
    time.sleep(3)
    scene.safe_on_stock("crash_loop")
    safe_mode("on")
    safe_mode("off")


@fault("safe mode asked for while an engine loads ends the engine")
def safe_mode_in_load(scene: Scene) -> None:
    scene.strike()
    safe_mode("on")
    scene.safe_on_stock("requested", "cli: fault")
    safe_mode("off")


@fault(
    "safe mode asked for during a back-off holds; taken back, all is forgiven",
    scheduler={"backoff_s": 300.0, "backoff_limit_s": 600.0},
    takes_minutes=True,
)
def safe_mode_in_back_off(scene: Scene) -> None:
    scene.ring("crash")
    scene.safe_on_stock("ejected")
    scene.order("hang")
    scene.safe_s = None
    scene.strike()
    safe_mode("on")
    scene.safe_on_stock("requested", "cli: fault")
    safe_mode("off")


@fault("safe mode asked for on a full disk holds", takes_minutes=True)
def disk_full(scene: Scene) -> None:
    with full(STATE):
        scene.strike()
        safe_mode("on")
        scene.safe_on_stock("requested", "cli: fault")
        switch = STATE / "safe-mode"
        if switch.exists() and not switch.read_text():
            # The agent was silent for a while, so the file was written too. On a full disk it is
            # empty, and `off` removes no request without a name.
            switch.unlink()
        safe_mode("off")


@fault("an agent that cannot read who asked for safe mode keeps to it", takes_minutes=True)
def state_garbled(scene: Scene) -> None:
    stop_in_order(scene)
    STATE.mkdir(exist_ok=True)
    REQUESTS.write_text("\0garbage")
    scene.undo.callback(REQUESTS.unlink, missing_ok=True)
    scene.strike()
    scene.start_agent()
    scene.safe_on_stock("requested", "cannot be read")
    temper("safe-mode", "off", "--requester", "unreadable-state", *OPTIONS)
    scene.recover()
    claim(not REQUESTS.exists(), f"{REQUESTS} is still there")


def resident_mib(pid: int) -> int:
    """Return the memory that a process has in RAM."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // 2**20
