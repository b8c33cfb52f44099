"""Faults of the agent that loads an engine, of its files, and of others who want the same."""

import signal
import socket
import time

import kernel
from acting import (
    RUN,
    STATS,
    caged_agent,
    claim_refused,
    kill_engine,
    nothing_left,
    stop_in_order,
    stopped_rival,
    told_pods,
)
from damage import (
    named_process,
    saying,
    without,
)
from scene import Scene, claim, is_loading
from temper_agent import PODS, PROFILES, SETTINGS, write_settings
from traces import OWN
from while_loading import GROUP

fault = GROUP.fault
SECOND = OWN / "second.toml"


@fault("while another scheduler loads no engine is started")
def foreign_process(scene: Scene) -> None:
    with stopped_rival() as pid:
        kill_engine(scene)
        scene.safe_on_stock("foreign_scheduler", f"scx_rival runs as process {pid}")


@fault("a process of root that only has the name of a scheduler holds nothing up")
def foreign_by_name(scene: Scene) -> None:
    engine = scene.engine()
    with named_process("scx_rusty"):
        kill_engine(scene)
        loading = scene.safe(
            "loading", lambda seen: is_loading(seen) and engine not in seen.engines
        )
        claim(len(loading.engines) == 1, f"not one engine, but {loading.engines}")


@fault(
    "a second agent with the same settings ends with one line and disturbs nothing",
    takes_minutes=True,
)
def second_agent(scene: Scene) -> None:
    engine = scene.engine()
    scene.strike()
    claim_refused(3, "another agent")
    claim(scene.safe_while_loading().engines == (engine,), "the first one's engine is gone")


@fault("a second agent with port and socket of its own ends with one line, too", takes_minutes=True)
def second_agent_elsewhere(scene: Scene) -> None:
    engine = scene.engine()
    server = {"listen": "127.0.0.1:9101", "socket": str(OWN / "second.sock")}
    write_settings(SECOND, {"server": server})
    scene.strike()
    claim_refused(3, "another agent", SECOND)
    claim(scene.safe_while_loading().engines == (engine,), "the first one's engine is gone")


@fault(
    "an agent whose port is taken loads an engine, and takes the port when it is free",
    takes_minutes=True,
)
def port_taken(scene: Scene) -> None:
    stop_in_order(scene)
    with socket.create_server(("127.0.0.1", 9100)):
        scene.strike()
        scene.start_agent()
        scene.wait_for("an engine", kernel.engines)
    scene.wait_for("an answer", lambda: scene.agent is not None and scene.agent.ask("/safe-mode"))
    scene.safe_while_loading()


@fault(
    "settings that are broken during the run change nothing; a restart refuses them in one line",
    takes_minutes=True,
)
def settings_broken(scene: Scene) -> None:
    engine = scene.engine()
    with saying(SETTINGS, "[scheduler]\nquiet_s = 'soon'\n"):
        scene.strike()
        claim(scene.safe_while_loading().engines == (engine,), "the engine was replaced")
        stop_in_order(scene)
        claim_refused(2, "quiet_s")
        scene.safe_without_agent()
    scene.start_agent()


@fault(
    "a profile that is broken during the run changes nothing; a restart goes on without it",
    takes_minutes=True,
)
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


@fault(
    "an agent out of memory takes its engine along; the next one starts afresh", takes_minutes=True
)
def agent_out_of_memory_in_load(scene: Scene) -> None:
    with caged_agent(scene) as cage:
        scene.strike()
        (cage / "memory.max").write_text("1M")
        scene.agent.wait()
        scene.safe_without_agent()
    scene.start_agent()


@fault(
    "an agent that is interrupted by SIGINT while its engine loads ends in order",
    takes_minutes=True,
)
def agent_interrupted_in_load(scene: Scene) -> None:
    scene.strike()
    scene.agent.send(signal.SIGINT)
    claim(scene.agent.wait() == 0, f"exit code {scene.agent.process.returncode}")
    scene.safe_without_agent()
    scene.start_agent()


@fault("what dead agents and engines left misleads no new one", takes_minutes=True)
def state_stale(scene: Scene) -> None:
    scene.agent.kill()
    scene.expect("everybody gone", lambda seen: seen.is_stock)
    leave_stale_state()
    scene.strike()
    scene.start_agent()
    scene.safe_while_loading()
    claim(not (RUN / "engine-99.json").exists(), "an old configuration is still there")


@fault("a stop while an engine loads ends with exit code 0 and leaves nothing", takes_minutes=True)
def agent_terminated_in_load(scene: Scene) -> None:
    scene.strike()
    stop_in_order(scene)
    scene.safe_without_agent()
    nothing_left(scene)
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
