"""The failures: what happens to agent and engine. A new failure is one entry of ``FAILURES``."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from bench.failures.stage import PROFILE_ID, Stage
from bench.ladder.arms import CRITICAL, HIGH
from bench.ladder.kernel import scheduler
from tests.kernel.faults.hogs import bound, hogging

HOGGED_CPU = 3
SAFE_S = 3.0
DRAINED_S = 20.0
PROFILE = f"""
schema_version = 1
id = "{PROFILE_ID}"

[fingerprint]
processes = ["named-by-annotation-alone"]

[[thread_groups]]
name = "serving"
match = [{{ comm_prefix = "ladder-server" }}, {{ comm_prefix = "ladder-client" }}]
treatment = "exclusive"
cpu_fraction = 0.6

[[thread_groups]]
name = "logs"
treatment = "yield"
"""


@frozen
class Failure:
    """One failure. ``play`` marks its begin, and returns when an engine enforces again.

    ``settings`` are tables of the agent's settings file.
    """

    summary: str
    play: Callable[[Stage], None]
    settings: Mapping[str, Any] = field(factory=dict)


def kill_agent(stage: Stage) -> None:
    """Kill the agent, and start another one at once, as a supervisor would."""
    stage.mark("SIGKILL to the agent")
    os.kill(stage.enforcing.pid, signal.SIGKILL)
    stage.start_agent()
    stage.wait_for_stock()
    stage.rest_while_loading()
    stage.wait_for_engine()


def kill_engine(stage: Stage) -> None:
    """Kill the engine."""
    (engine,) = stage.engines()
    stage.mark("SIGKILL to the engine")
    os.kill(engine, signal.SIGKILL)
    stage.wait_for_stock()
    stage.rest_while_loading()
    stage.wait_for_engine()


def stall(stage: Stage) -> None:
    """Keep a thread from its only CPU by a real-time thread, until the engine is ejected."""
    with hogging(HOGGED_CPU), bound(HOGGED_CPU):
        stage.mark(f"a real-time thread keeps CPU {HOGGED_CPU}")
        stage.wait_for_stock()
    stage.mark("the real-time thread has ended")
    stage.rest_while_loading()
    stage.wait_for_engine()


def refuse_plan(stage: Stage) -> None:
    """Have another plan wanted, whose engine loads what the verifier refuses."""
    stage.engine.be_refused()
    stage.mark("another plan is wanted, which does not verify")
    stage.list_pods(HIGH)
    stage.rest_while_loading()
    stage.wait_until("the plan is refused", lambda: "verifier" in stage.say().get("detail", ""))
    stage.rouse()
    stage.engine.be_real()
    stage.list_pods(CRITICAL)
    stage.wait_for_engine()


def ask_for_safe_mode(stage: Stage) -> None:
    """Ask for safe mode by the file, and take it back after three seconds."""
    stage.mark("safe mode is asked for")
    stage.node.files.safe_mode.write_text("failures")
    stage.wait_for_stock()
    time.sleep(SAFE_S)
    stage.mark("safe mode is taken back")
    stage.node.files.safe_mode.unlink()
    stage.rest_while_loading()
    stage.wait_for_engine()


def restart_agent(stage: Stage) -> None:
    """Stop the agent in order, and start another one when it has ended."""
    pid = stage.enforcing.pid
    stage.mark("SIGTERM to the agent")
    os.kill(pid, signal.SIGTERM)
    stage.wait_until("the agent has ended", stage.enforcing.has_ended)
    stage.start_agent()
    stage.rest_while_loading()
    stage.wait_for_engine()


def upgrade_engine(stage: Stage) -> None:
    """Replace the engine's file. The next plan, with other layers, is loaded from the new one."""
    stage.engine.be_copied()
    before = scheduler().attaches
    stage.mark("the engine's file is another, and another plan is wanted")
    stage.list_pods(CRITICAL, PROFILE_ID)
    stage.rest_while_loading()
    stage.wait_until("the next engine is attached", lambda: scheduler().attaches > before)
    stage.wait_for_engine()


def drain_node(stage: Stage) -> None:
    """Have all pods leave the node's list, and return later. The request server answers on.

    It stands for a pod that ends slowly. The busy threads of the other pod rest meanwhile.
    """
    stage.mark("all pods leave the node")
    stage.list_no_pods()
    stage.rest()
    stage.wait_until("the agent knows of no pod", lambda: not stage.layers_of_server())
    time.sleep(DRAINED_S)
    stage.rouse()
    stage.mark("all pods return")
    stage.list_pods(CRITICAL)
    stage.wait_until("the pod is fenced", lambda: stage.layers_of_server() == {"critical"})
    stage.wait_for_engine()


FAILURES: Mapping[str, Failure] = {
    "agent-killed": Failure("the agent is killed and started again at once", kill_agent),
    "engine-killed": Failure("the engine is killed", kill_engine),
    "stall": Failure(
        "a real-time thread keeps a thread from its CPU, with a watchdog of 4 s",
        stall,
        {"scheduler": {"watchdog_ms": 4000}},
    ),
    "plan-refused": Failure("the verifier refuses the next plan", refuse_plan),
    "safe-mode": Failure("safe mode by the file, for three seconds and more", ask_for_safe_mode),
    "restart": Failure("the agent is stopped in order and started again", restart_agent),
    "upgrade": Failure("another engine with another plan, by a warm swap", upgrade_engine),
    "drained": Failure("all pods leave the node, and return after 20 seconds", drain_node),
}
