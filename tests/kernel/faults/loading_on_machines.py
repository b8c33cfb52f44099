"""Faults of the machine on which an engine is to load."""

import os
import resource
import time
from pathlib import Path

from acting import (
    BPFFS,
    PIN,
    RUN,
    kill_engine,
    steering,
    stop_in_order,
)
from bpf_objects import Hints, pin_another_map
from damage import (
    caged,
    covered,
    full,
    jumped,
    limited,
    offline,
    read_only,
    unmounted,
    without,
)
from scene import Scene, claim
from traces import CGROUPS
from while_loading import GROUP

fault = GROUP.fault
SOMEBODY = 1000
# What keeps an agent from steering is looked at again once a minute.
TRIED_AGAIN_S = 120.0


@fault("with a full runtime directory no engine is started, and one is when there is room")
def runtime_directory_full(scene: Scene) -> None:
    hidden = list(RUN.glob("engine-*.json"))
    with full(RUN):
        kill_engine(scene)
        scene.safe_on_stock("ejected", "No space left")
    for path in hidden:  # a disk that is full would not have kept the agent from removing it
        path.unlink(missing_ok=True)


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


def restart(scene: Scene, mode: str, reason: str = "") -> None:
    """Start an agent after one that ended in order; claim how it steers, and why so."""
    scene.strike()
    scene.start_agent()
    scene.safe_while_loading()
    told = steering(scene)
    claim(told["mode"] == mode and reason in told["reason"], f"not {mode}, {reason}: {told}")


@fault(
    "without a bpffs an agent does without hints and says why; it steers once there is one",
    takes_minutes=True,
)
def bpffs_missing(scene: Scene) -> None:
    stop_in_order(scene)
    with unmounted(BPFFS, "bpf"):
        restart(scene, "static", "not on a BPF file system")
    scene.wait_for("hints", lambda: steering(scene)["mode"] == "hints", TRIED_AGAIN_S)
    kill_engine(scene)  # the next one is given hints
    scene.wait_for("a pin", PIN.exists)


@fault("with a read-only bpffs an agent does without hints and says why", takes_minutes=True)
def bpffs_read_only(scene: Scene) -> None:
    stop_in_order(scene)
    with read_only(BPFFS):
        restart(scene, "static", "Read-only file system")
        stop_in_order(scene)
    restart(scene, "hints")


@fault("an agent trusts no directory for its pin that somebody else owns", takes_minutes=True)
def pin_directory_of_somebody(scene: Scene) -> None:
    stop_in_order(scene)
    PIN.parent.mkdir(exist_ok=True)
    pin_another_map(PIN)
    os.chown(PIN.parent, SOMEBODY, SOMEBODY)
    restart(scene, "static", f"belongs to uid {SOMEBODY}")
    stop_in_order(scene)
    PIN.unlink()
    PIN.parent.rmdir()
    restart(scene, "hints")


@fault(
    "an agent replaces an empty directory that somebody else made for its pin", takes_minutes=True
)
def empty_pin_directory_of_somebody(scene: Scene) -> None:
    stop_in_order(scene)
    PIN.parent.mkdir(exist_ok=True)
    os.chown(PIN.parent, SOMEBODY, SOMEBODY)
    restart(scene, "hints")


@fault("an agent puts its own map where it finds another's", takes_minutes=True)
def pin_of_somebody(scene: Scene) -> None:
    stop_in_order(scene)
    PIN.parent.mkdir(exist_ok=True)
    pin_another_map(PIN)
    restart(scene, "hints")
    with Hints(PIN) as hints:
        claim(hints.of(scene.known[0]), "no hint for a thread of a pod")
