"""Faults while the next engine loads beside the one that schedules; here it is a stand-in."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acting import RUN, another_plan, nothing_left, safe_mode, stop_in_order
from catalogue import Group
from damage import full
from scene import Scene, is_enforcing

GROUP = Group("swapping", home="enforcing", order="run")
fault = GROUP.fault


@contextmanager
def swapping(scene: Scene, order: str) -> Iterator[int]:
    """Have another plan wanted, whose engine meets *order*; gives the engine in force."""
    engine = scene.engine()
    scene.order(order)
    with another_plan(scene):
        yield engine
        scene.order("run")


@contextmanager
def two_engines(scene: Scene) -> Iterator[tuple[int, int]]:
    """Have an engine in force, and beside it one that hangs where it would load."""
    with swapping(scene, "hang") as engine:
        heir = scene.heir(engine)
        # the launcher has become the stand-in once it waits in its pipe
        time.sleep(1)
        scene.strike()
        yield engine, heir


def back_in_force(scene: Scene, engine: int) -> None:
    """Claim that nothing but the old engine is there any more."""
    scene.expect("the old engine alone", lambda seen: seen.engines == (engine,))
    scene.safe_still_enforcing(engine)


@fault("a next engine that crashes while it loads leaves the old one in force")
def heir_crashes(scene: Scene) -> None:
    with swapping(scene, "crash") as engine:
        scene.strike()
        scene.safe(
            "the old engine, and why",
            lambda seen: is_enforcing(seen) and "exit code 70" in seen.detail,
        )
        scene.order("hang")
    back_in_force(scene, engine)


@fault("a next engine whose plan the verifier refuses leaves the old one in force")
def heir_refused(scene: Scene) -> None:
    with swapping(scene, "refuse") as engine:
        scene.strike()
        scene.safe(
            "the old engine, and why",
            lambda seen: is_enforcing(seen) and "verifier" in seen.detail,
        )
    back_in_force(scene, engine)


@fault("a next engine that somebody kills leaves the old one in force")
def heir_killed(scene: Scene) -> None:
    with two_engines(scene) as (engine, heir):
        os.kill(heir, signal.SIGKILL)
        scene.safe(
            "the old engine, and why",
            lambda seen: is_enforcing(seen) and "killed" in seen.detail,
        )
        scene.order("hang")
    back_in_force(scene, engine)


@fault("a next engine that hangs is dropped when its plan is no longer wanted")
def heir_hangs(scene: Scene) -> None:
    with two_engines(scene) as (engine, _):
        pass
    back_in_force(scene, engine)


@fault("a next engine that cannot be started for want of disk leaves the old one in force")
def disk_full_in_swap(scene: Scene) -> None:
    with full(RUN), swapping(scene, "run") as engine:
        scene.strike()
        scene.safe(
            "the old engine, and why",
            lambda seen: is_enforcing(seen) and "No space left" in seen.detail,
        )
        scene.order("hang")
    back_in_force(scene, engine)


@fault("an engine that is killed while the next one loads takes that one along")
def engine_killed_in_swap(scene: Scene) -> None:
    with two_engines(scene) as (engine, _):
        os.kill(engine, signal.SIGKILL)
        scene.safe_on_stock("ejected", "the engine was killed by SIGKILL")


@fault("SysRq-S while the next engine loads leaves the stock scheduler, not the next engine")
def sysrq_in_swap(scene: Scene) -> None:
    with two_engines(scene):
        Path("/proc/sysrq-trigger").write_text("S")
        scene.safe_on_stock("ejected", "sysrq-S")


@fault("safe mode asked for while the next engine loads ends both")
def safe_mode_in_swap(scene: Scene) -> None:
    with two_engines(scene):
        safe_mode("on")
        scene.safe_on_stock("requested", "cli: fault")
    safe_mode("off")


@fault("an agent killed while the next engine loads takes both along")
def agent_killed_in_swap(scene: Scene) -> None:
    with two_engines(scene):
        scene.agent.kill()
        scene.safe_without_agent()
    scene.start_agent()


@fault("a stop while the next engine loads leaves the stock scheduler and nothing else")
def agent_stopped_in_swap(scene: Scene) -> None:
    with two_engines(scene):
        stop_in_order(scene)
        scene.safe_without_agent()
    nothing_left(scene)
    scene.agent = None
