"""Faults that need no attached engine: a stand-in hangs, crashes or babbles where it would load.

Between cases an agent runs whose engine is still loading, so the stock scheduler runs all of it.
"""

import os
import resource
import signal
import socket
import time
from pathlib import Path

import kernel
from acting import (
    OPTIONS,
    RUN,
    STATE,
    STATS,
    claim_refused,
    safe_mode,
    signal_engine,
    stop_in_order,
    told_pods,
)
from catalogue import Group
from damage import (
    caged,
    covered,
    full,
    jumped,
    limited,
    named_process,
    offline,
    read_only,
    replaced,
    saying,
    unmounted,
    without,
)
from scene import Scene, claim
from temper_agent import ENGINE, PODS, PROFILES, SETTINGS, Agent, temper, write_settings
from traces import CGROUPS, OWN, leftovers

GROUP = Group("loading", home="reloading", order="hang")
fault = GROUP.fault

REQUESTS = STATE / "safe-mode-requests.json"


def kill_engine(scene: Scene) -> None:
    """Have the agent start another engine, which meets the fault."""
    signal_engine(scene, signal.SIGKILL)


# -- the engine ---------------------------------------------------------------------------------


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
    scheduler={"start_deadline_s": 4.0},
)
def engine_hangs_in_load(scene: Scene) -> None:
    scene.strike()
    scene.safe_on_stock("ejected", "did not attach within 4 s")


@fault(
    "an engine that is stopped while it loads is ended at its deadline",
    scheduler={"start_deadline_s": 4.0},
)
def engine_stopped_in_load(scene: Scene) -> None:
    signal_engine(scene, signal.SIGSTOP)
    scene.safe_on_stock("ejected", "did not attach within 4 s")


@fault(
    "an engine that is deaf to SIGTERM while it loads is gone at once when safe mode is asked for"
)
def engine_deaf_in_load(scene: Scene) -> None:
    scene.ring("deaf")
    safe_mode("on")
    scene.safe_on_stock("requested", "fault")
    safe_mode("off")


@fault("an engine killed by somebody while it loads is told and tried again")
def engine_killed_in_load(scene: Scene) -> None:
    kill_engine(scene)
    scene.safe_on_stock("ejected", "somebody killed the engine")


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
    scene.pods["backup"].priority = 0
    scene.list_pods()
    scene.recover()
    scene.pods["backup"].priority = -1000
    scene.list_pods()


@fault(
    "a node whose engine fails again and again gives up, until somebody goes through safe mode",
    scheduler={"crash_budget": 3, "backoff_s": 0.2},
)
def crash_budget_used_up(scene: Scene) -> None:
    scene.ring("crash")
    scene.safe_on_stock("crash_loop", "3 failures within an hour")
    scene.order("hang")
    time.sleep(3)
    scene.safe_on_stock("crash_loop")
    safe_mode("on")
    safe_mode("off")


# -- safe mode ----------------------------------------------------------------------------------


@fault("safe mode asked for while an engine loads ends the engine")
def safe_mode_in_load(scene: Scene) -> None:
    scene.strike()
    safe_mode("on")
    scene.safe_on_stock("requested", "cli: fault")
    safe_mode("off")


@fault(
    "safe mode asked for during a back-off holds; taken back, all is forgiven",
    scheduler={"backoff_s": 300.0, "backoff_limit_s": 600.0},
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


@fault("safe mode asked for on a full disk holds")
def disk_full(scene: Scene) -> None:
    with full(STATE):
        scene.strike()
        safe_mode("on")
        scene.safe_on_stock("requested", "cli: fault")
        safe_mode("off")


@fault("an agent that cannot read who asked for safe mode keeps to it")
def state_garbled(scene: Scene) -> None:
    scene.agent.stop()
    STATE.mkdir(exist_ok=True)
    with saying(REQUESTS, "\0garbage"):
        scene.strike()
        scene.start_agent()
        scene.safe_on_stock("requested", "cannot be read")
        temper("safe-mode", "off", "--requester", "unreadable-state", *OPTIONS)
        scene.recover()
        claim(not REQUESTS.exists(), f"{REQUESTS} is still there")
        REQUESTS.touch()
    REQUESTS.unlink(missing_ok=True)


# -- the machine --------------------------------------------------------------------------------


@fault("with a full runtime directory no engine is started, and one is when there is room")
def runtime_directory_full(scene: Scene) -> None:
    with full(RUN):
        kill_engine(scene)
        scene.safe_on_stock("ejected", "No space left")


@fault("with a read-only runtime directory no engine is started")
def runtime_directory_read_only(scene: Scene) -> None:
    with read_only(RUN):
        kill_engine(scene)
        scene.safe_on_stock("preflight", "runtime_directory")


@fault("without a cgroup hierarchy no engine is started")
def cgroups_missing(scene: Scene) -> None:
    with unmounted(CGROUPS, "cgroup2"):
        kill_engine(scene)
        scene.safe_on_stock("preflight", "cgroup_v2")


@fault("a read-only cgroup hierarchy is no hindrance")
def cgroups_read_only(scene: Scene) -> None:
    with read_only(CGROUPS):
        kill_engine(scene)
        scene.safe_on_stock("ejected")
        scene.recover()


@fault("without the kernel's configuration no engine is started")
def kernel_configuration_missing(scene: Scene) -> None:
    with without(Path(f"/boot/config-{os.uname().release}")):
        kill_engine(scene)
        scene.safe_on_stock("preflight", "kernel_config")


@fault("without the kernel's log an end is told by the exit code")
def kernel_log_missing(scene: Scene) -> None:
    with covered(Path("/dev/kmsg")):
        scene.ring("crash")
        scene.safe_on_stock("ejected", "exit code 70")


@fault("with a CPU offline no engine is started, and one is when it is back")
def cpu_offline(scene: Scene) -> None:
    with offline(3):
        kill_engine(scene)
        scene.safe_on_stock("preflight", "cpus_online: 1 possible CPUs")


@fault("with too little memory in its cgroup no engine is started")
def memory_short(scene: Scene) -> None:
    with caged(scene.agent.pid, memory_max="256M"):
        kill_engine(scene)
        scene.safe_on_stock("preflight", "memory: this cgroup may use 256 MiB")


@fault("with no process to spare no engine is started, and one is later")
def processes_used_up(scene: Scene) -> None:
    with caged(scene.agent.pid, pids_max="1"):
        kill_engine(scene)
        scene.safe_on_stock("ejected", "cannot start")


@fault("without a file descriptor to spare the agent lives and concludes nothing")
def descriptors_used_up(scene: Scene) -> None:
    agent = scene.agent
    engine = scene.engine()
    with limited(agent.pid, resource.RLIMIT_NOFILE, 3):
        scene.strike()
        time.sleep(4)
        claim(agent.is_alive, "the agent has ended")
    seen = scene.safe_while_loading()
    claim(seen.engines == (engine,), f"engine {engine} was given up: {seen}")


@fault("a clock that jumps by days, forth and back, changes nothing")
def clock_jumps(scene: Scene) -> None:
    for seconds in (86_400, -86_400):
        with jumped(seconds):
            kill_engine(scene)
            scene.safe_on_stock("ejected", "killed")
            scene.recover()


# -- other schedulers and other agents ------------------------------------------------------------


@fault("while another scheduler's process is there no engine is started")
def foreign_process(scene: Scene) -> None:
    with named_process("scx_rusty"):
        kill_engine(scene)
        scene.safe_on_stock("foreign_scheduler", "scx_rusty runs as process")


@fault("a second agent with the same settings ends with one line and disturbs nothing")
def second_agent(scene: Scene) -> None:
    engine = scene.engine()
    scene.strike()
    claim_refused(3, "another agent answers")
    claim(scene.safe_while_loading().engines == (engine,), "the first one's engine is gone")


@fault("a second agent with settings of its own keeps its hands off the first one's engine")
def second_agent_elsewhere(scene: Scene) -> None:
    engine, settings = scene.engine(), OWN / "second.toml"
    server = {"listen": "127.0.0.1:9101", "socket": str(OWN / "second.sock")}
    write_settings(settings, {"server": server})
    scene.strike()
    second = Agent(settings, port=9101)
    scene.undo.callback(second.kill)
    scene.safe(
        "the second in safe mode",
        lambda _: second.ask("/safe-mode").get("reason") == "foreign_scheduler",
    )
    claim(second.stop() == 0, "the second did not stop in order")
    claim(scene.look().engines == (engine,), "the first one's engine is gone")


@fault("an agent whose port is taken ends with one line")
def port_taken(scene: Scene) -> None:
    stop_in_order(scene)
    with socket.create_server(("127.0.0.1", 9100)):
        scene.strike()
        claim_refused(3, "another process does")
        scene.safe_without_agent()
    scene.start_agent()


# -- settings, profiles, pods ---------------------------------------------------------------------


@fault("settings that are broken during the run change nothing; a restart refuses them in one line")
def settings_broken(scene: Scene) -> None:
    engine = scene.engine()
    with saying(SETTINGS, "[scheduler]\nquiet_s = 'soon'\n"):
        scene.strike()
        claim(scene.safe_while_loading().engines == (engine,), "the engine was replaced")
        stop_in_order(scene)
        claim_refused(2, "quiet_s")
        scene.safe_without_agent()
    scene.start_agent()


@fault("a profile that is broken during the run changes nothing; a restart goes on without it")
def profile_broken(scene: Scene) -> None:
    engine = scene.engine()
    with saying(PROFILES / "broken.toml", "name = ["):
        scene.strike()
        time.sleep(2)
        claim(scene.safe_while_loading().engines == (engine,), "the engine was replaced")
        stop_in_order(scene)
        scene.start_agent()
        scene.recover()


@fault("a pod list that is cut off keeps the last good one in force, and says so")
def pods_garbled(scene: Scene) -> None:
    engine = scene.engine()
    with saying(PODS, PODS.read_text()[:50]):
        scene.strike()
        time.sleep(3)
        claim(scene.safe_while_loading().engines == (engine,), "the engine was replaced")
        claim(told_pods(scene) == 2, f"{told_pods(scene)} pods, not 2")


@fault("a pod list that is gone keeps the last good one in force")
def pods_missing(scene: Scene) -> None:
    engine = scene.engine()
    with without(PODS):
        scene.strike()
        time.sleep(3)
        claim(scene.safe_while_loading().engines == (engine,), "the engine was replaced")
        claim(told_pods(scene) == 2, f"{told_pods(scene)} pods, not 2")


# -- the agent ------------------------------------------------------------------------------------


@fault("an agent killed while its engine loads takes the engine along; the next one starts afresh")
def agent_killed_in_load(scene: Scene) -> None:
    scene.strike()
    scene.agent.kill()
    scene.safe_without_agent()
    scene.start_agent()


@fault("an agent that is stopped while its engine loads goes on where it was")
def agent_stopped_in_load(scene: Scene) -> None:
    scene.strike()
    scene.agent.send(signal.SIGSTOP)
    time.sleep(3)
    claim(kernel.state() == "disabled", "something attached")
    scene.agent.send(signal.SIGCONT)
    scene.safe_while_loading()


@fault("an agent out of memory takes its engine along; the next one starts afresh")
def agent_out_of_memory_in_load(scene: Scene) -> None:
    with caged(scene.agent.pid) as cage:
        scene.strike()
        (cage / "memory.max").write_text("1M")
        scene.agent.wait()
        scene.safe_without_agent()
    scene.start_agent()


@fault("an agent that is interrupted by SIGINT while its engine loads ends in order")
def agent_interrupted_in_load(scene: Scene) -> None:
    scene.strike()
    scene.agent.send(signal.SIGINT)
    claim(scene.agent.wait() == 0, f"exit code {scene.agent.process.returncode}")
    scene.safe_without_agent()
    scene.start_agent()


@fault("what dead agents and engines left misleads no new one")
def state_stale(scene: Scene) -> None:
    scene.agent.kill()
    scene.expect("everybody gone", lambda seen: seen.is_stock)
    leave_stale_state()
    scene.strike()
    scene.start_agent()
    scene.safe_while_loading()
    claim(not (RUN / "engine-99.json").exists(), "an old configuration is still there")


@fault("a stop while an engine loads ends with exit code 0 and leaves nothing")
def agent_terminated_in_load(scene: Scene) -> None:
    scene.strike()
    stop_in_order(scene)
    scene.safe_without_agent()
    left = leftovers(scene.empty, scene.known)
    claim(not left, f"left: {', '.join(left)}")
    scene.agent = None


def leave_stale_state() -> None:
    """Leave what a dead agent could: notes of an engine that is process 1 now, dead sockets."""
    (RUN / "engine-99.json").write_text("[]")
    (RUN / "engine.pid").write_text("1 12345\n")
    STATS.parent.mkdir(parents=True, exist_ok=True)
    for path in (STATS, RUN / "agent.sock"):
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))


def resident_mib(pid: int) -> int:
    """Return the memory that a process has in RAM."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // 2**20
