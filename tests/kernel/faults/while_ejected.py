"""Faults that end an attached engine: it is told why, and another one attaches."""

import json
import os
import signal
import subprocess
from pathlib import Path

import kernel
from acting import STATS, another_plan, caged_agent, rival, safe_mode, scratch, signal_engine
from catalogue import Group
from damage import caged, offline
from hogs import bound, hogging
from refused_plan import refused_plan
from scene import SAFE_S, Scene, claim, is_enforcing
from stats_proxy import StatsProxy
from traces import CGROUPS, OWN

GROUP = Group("ejected", home="enforcing", order="run")
fault = GROUP.fault

SYSRQ = Path("/proc/sysrq-trigger")
APART = OWN / "scx"
# The verifier gives up only after a million instructions.
REFUSED_S = 1200.0


@fault("an engine that somebody kills is told and replaced")
def engine_killed(scene: Scene) -> None:
    signal_engine(scene, signal.SIGKILL)
    scene.safe_on_stock("ejected", "the engine was killed by SIGKILL")


@fault("an engine that somebody ends by SIGTERM is told and replaced")
def engine_terminated(scene: Scene) -> None:
    signal_engine(scene, signal.SIGTERM)
    scene.safe_on_stock("ejected", "exit 0")


@fault("an engine that dies of an instruction is told and replaced")
def engine_crashes(scene: Scene) -> None:
    # SIGSEGV from outside is caught by its language's runtime, which then goes on
    signal_engine(scene, signal.SIGILL)
    scene.safe_on_stock("ejected", "exit code -4")


@fault("an engine that is killed the moment it attaches is not taken for good")
def engine_killed_at_attach(scene: Scene) -> None:
    signal_engine(scene, signal.SIGKILL)
    scene.expect("ejected", lambda seen: seen.is_stock)
    kernel.wait_until("attached", lambda: kernel.state() != "disabled", SAFE_S)
    signal_engine(scene, signal.SIGKILL)
    scene.safe_on_stock("ejected", "the engine was killed by SIGKILL")


@fault("an engine that is stopped is taken for hung, ended and replaced")
def engine_stopped(scene: Scene) -> None:
    signal_engine(scene, signal.SIGSTOP)
    scene.safe_on_stock("ejected", "no statistics for 10 s")


@fault("an engine that is thrown out by SysRq-S is told as that and replaced")
def sysrq_used(scene: Scene) -> None:
    scene.strike()
    SYSRQ.write_text("S")
    scene.safe_on_stock("ejected", "sysrq-S")


@fault("an engine out of memory is told as that and replaced")
def engine_out_of_memory(scene: Scene) -> None:
    with caged(scene.agent.pid) as cage:
        os.kill(scene.engine(), signal.SIGKILL)
        scene.expect("ejected", lambda seen: seen.is_stock)
        scene.recover()
        (CGROUPS / "cgroup.procs").write_text(str(scene.agent.pid))
        scene.strike()
        (cage / "memory.max").write_text("1M")
        scene.safe_on_stock("ejected", "out of memory")


@fault("a killed agent takes its engine along; the next one finds nothing in its way")
def agent_killed(scene: Scene) -> None:
    scene.strike()
    scene.agent.kill()
    scene.safe_without_agent()
    scene.start_agent()


@fault("an agent out of memory takes its engine along; the next one finds nothing in its way")
def agent_out_of_memory(scene: Scene) -> None:
    with caged_agent(scene) as cage:
        scene.strike()
        (cage / "memory.max").write_text("1M")
        scene.agent.wait()
        scene.safe_without_agent()
    scene.start_agent()


@fault("safe mode asked for in force ends the engine, and taken back starts one")
def safe_mode_in_force(scene: Scene) -> None:
    scene.strike()
    safe_mode("on")
    scene.safe_on_stock("requested", "cli: fault")
    safe_mode("off")


@fault("a CPU that goes offline costs the engine; the node is enforced again when it is back")
def cpu_offline_in_force(scene: Scene) -> None:
    with offline(3):
        scene.strike()
        scene.safe_on_stock("preflight", "cpus_online")


@fault("while another scheduler is attached nothing is started, and ours attaches when it is gone")
def foreign_before(scene: Scene) -> None:
    safe_mode("on")
    scene.expect("stock", lambda seen: seen.is_stock)
    with subprocess.Popen(rival(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        scene.undo.callback(process.kill)
        kernel.wait_until("the rival", lambda: kernel.state() == "enabled", SAFE_S)
        scene.strike()
        safe_mode("off")
        scene.safe(
            "leaving the other scheduler alone",
            lambda seen: (seen.kernel, seen.reason) == ("enabled", "foreign_scheduler"),
        )
        claim(not kernel.engines(), "an engine of ours was started")
        process.terminate()


@fault(
    "statistics that come late, cut off or as garbage for a while are no reason to end the engine"
)
def stats_slow_then_garbage_then_hung(scene: Scene) -> None:
    APART.mkdir(exist_ok=True)
    with StatsProxy(STATS, APART / "root/stats") as proxy:
        scene.order("apart", str(APART))
        os.kill(scene.engine(), signal.SIGKILL)
        scene.expect("ejected", lambda seen: seen.is_stock)
        engine = scene.recover().engines[0]
        for manner in ("slow", "cut", "garbage", "hung"):
            proxy.behave(manner, 4.0)
            proxy.behave("honest", 2.0)
            scene.safe_still_enforcing(engine)
        scene.strike()
        proxy.behave("garbage")
        scene.safe_on_stock("ejected", "no statistics for 10 s")
        scene.order("run")


@fault(
    "a plan too big for the verifier is refused, and the last good one is in force again",
    # A busy host's time counts as the engine's in the guest: half of it has been seen to be that.
    scheduler={"start_deadline_s": 1000.0},
)
def plan_too_big(scene: Scene) -> None:
    good = scene.agent.ask("/config")
    scene.order("other", str(scratch("four.json", json.dumps(refused_plan()))))
    scene.strike()
    with another_plan(scene):
        scene.expect("refused", lambda seen: "verifier" in seen.detail, REFUSED_S)
        scene.order("run")
        scene.safe("the good plan", lambda seen: is_enforcing(seen) and "verifier" in seen.detail)
        claim(scene.agent.ask("/config") == good, "another plan is in force")


@fault(
    "a thread that a real-time hog keeps from running ends the engine, and is named with its CPU",
    scheduler={"watchdog_ms": 4000},
)
def stall(scene: Scene) -> None:
    with hogging(3), bound(3):
        scene.strike()
        seen = scene.safe_on_stock("ejected", "could not run for")
    claim("CPU 3" in seen.detail, seen.detail)
