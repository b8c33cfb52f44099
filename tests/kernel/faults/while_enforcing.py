"""Faults that an attached engine has to live through: none of them may end it."""

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import storms
from acting import (
    RUN,
    STATE,
    STATS,
    claim_refused,
    nothing_left,
    rival,
    stop_in_order,
    told_pods,
)
from catalogue import Group
from damage import covered, full, jumped, limited, read_only, saying, unmounted, without
from hogs import hogging
from scene import SAFE_S, Scene, claim
from temper_agent import PODS, PROFILES, SETTINGS
from traces import CGROUPS

GROUP = Group("enforcing", home="enforcing", order="run")
fault = GROUP.fault

LASTS_S = 4.0


@contextmanager
def enduring(scene: Scene) -> Iterator[None]:
    """Claim that the fault of the block, and what follows, leaves the engine in force."""
    engine = scene.engine()
    yield
    scene.safe_still_enforcing(engine)


@contextmanager
def storm(scene: Scene, what: str, count: int) -> Iterator["subprocess.Popen[str]"]:
    """Have a storm in the best-effort pod's container."""
    container = scene.pods["backup"].container
    command = [sys.executable, storms.__file__, what, str(count), str(container)]
    scene.strike()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    (container / "cgroup.procs").write_text(str(process.pid))
    try:
        yield process
    finally:
        process.communicate()
        claim(process.returncode == 0, f"the storm ended with {process.returncode}")


def last(scene: Scene) -> None:
    """Let the fault last: the engine is attached all the time."""
    scene.strike()
    latest = time.monotonic() + LASTS_S
    while time.monotonic() < latest:
        scene.expect("attached", lambda seen: seen.kernel == "enabled", 1.0)
        time.sleep(0.2)


@fault("an agent that is stopped leaves its engine in force, and goes on where it was")
def agent_stopped(scene: Scene) -> None:
    agent = scene.agent
    with enduring(scene):
        scene.undo.callback(agent.send, signal.SIGCONT)
        agent.send(signal.SIGSTOP)
        scene.agent = None
        last(scene)
        scene.agent = agent
        agent.send(signal.SIGCONT)


@fault("settings that are broken during the run change nothing")
def settings_broken_in_force(scene: Scene) -> None:
    with enduring(scene), saying(SETTINGS, "[scheduler\n"):
        last(scene)


@fault("a profile that is broken during the run changes nothing")
def profile_broken_in_force(scene: Scene) -> None:
    with enduring(scene), saying(PROFILES / "broken.toml", "name = ["):
        last(scene)


@fault("a pod list that is cut off during the run keeps the plan in force")
def pods_garbled_in_force(scene: Scene) -> None:
    with enduring(scene), saying(PODS, PODS.read_text()[:50]):
        last(scene)
        claim(told_pods(scene) == 2, f"{told_pods(scene)} pods, not 2")


@fault("a pod list that is gone during the run keeps the plan in force")
def pods_missing_in_force(scene: Scene) -> None:
    with enduring(scene), without(PODS):
        last(scene)


@fault("a full disk and a full runtime directory are nothing to an attached engine")
def disk_full_in_force(scene: Scene) -> None:
    with enduring(scene), full(STATE), full(RUN):
        last(scene)


@fault("a read-only runtime directory is nothing to an attached engine")
def runtime_directory_read_only_in_force(scene: Scene) -> None:
    with enduring(scene), read_only(RUN):
        last(scene)


@fault("a cgroup hierarchy that is gone is nothing to an attached engine")
def cgroups_missing_in_force(scene: Scene) -> None:
    with enduring(scene), unmounted(CGROUPS, "cgroup2"):
        last(scene)


@fault("a kernel's log that is gone is nothing to an attached engine")
def kernel_log_missing_in_force(scene: Scene) -> None:
    with enduring(scene), covered(Path("/dev/kmsg")):
        last(scene)


@fault("the engine's socket is needed for no conversation that has begun")
def stats_socket_removed(scene: Scene) -> None:
    with enduring(scene):
        scene.strike()
        STATS.unlink()
        time.sleep(LASTS_S)
        claim(scene.agent.ask("/observe").get("layers"), "no layers are told")


@fault("without a file descriptor to spare the agent lives, and the engine stays")
def descriptors_used_up_in_force(scene: Scene) -> None:
    with enduring(scene), limited(scene.agent.pid, resource.RLIMIT_NOFILE, 3):
        scene.strike()
        time.sleep(LASTS_S)
        claim(scene.agent.is_alive, "the agent has ended")


@fault("a clock that jumps by days, forth and back, is nothing to an attached engine")
def clock_jumps_in_force(scene: Scene) -> None:
    with enduring(scene):
        for seconds in (86_400, -86_400):
            with jumped(seconds):
                last(scene)


@fault("a second agent with the same settings ends with one line and disturbs nothing")
def second_agent_in_force(scene: Scene) -> None:
    with enduring(scene):
        scene.strike()
        claim_refused(3, "another agent")


@fault("2,000 cgroups made and removed are nothing to an attached engine")
def cgroup_storm(scene: Scene) -> None:
    with enduring(scene), storm(scene, "cgroups", 2000):
        pass


@fault("1,000 processes one after another are nothing to an attached engine")
def fork_storm(scene: Scene) -> None:
    with enduring(scene), storm(scene, "fork", 1000):
        pass


@fault("a thread that changes its name 50,000 times is nothing to an attached engine")
def rename_storm(scene: Scene) -> None:
    with enduring(scene), storm(scene, "rename", 50_000):
        pass


@fault("with 5,000 threads more the agent still observes, and the engine stays")
def five_thousand_threads(scene: Scene) -> None:
    with enduring(scene), storm(scene, "threads", 5000) as process:
        claim(process.stdout.readline() == "running\n", "not all threads could be started")
        scene.expect("all threads observed", lambda _: observed_threads(scene) > 5000, 60.0)


@fault("a real-time thread that keeps a CPU for seconds is no reason to eject the engine")
def realtime_hog(scene: Scene) -> None:
    with enduring(scene), hogging(3):
        last(scene)


@fault("a scheduler that is started beside ours is refused by the kernel, and ours stays")
def foreign_during(scene: Scene) -> None:
    with enduring(scene):
        scene.strike()
        ended = subprocess.run(rival(), capture_output=True, text=True, check=False, timeout=SAFE_S)
        claim(ended.returncode != 0, f"it attached: {ended.stderr}")


@fault("a stop leaves the stock scheduler and nothing else")
def uninstalled(scene: Scene) -> None:
    scene.strike()
    stop_in_order(scene)
    scene.safe_without_agent()
    nothing_left(scene)
    scene.agent = None


def observed_threads(scene: Scene) -> int:
    """Return how many threads the agent has seen in its pods."""
    return sum(int(pod["threads"]) for pod in scene.agent.ask("/observe").get("pods", ()))
