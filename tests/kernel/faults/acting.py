"""What cases do to the node and ask of it, in more than one group."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import kernel
from damage import caged
from scene import SAFE_S, Scene, claim
from temper_agent import SETTINGS, temper
from traces import KEPT, OWN, leftovers

RUN = Path("/run/temper")
STATE = Path("/var/lib/temper")
BPFFS = Path("/sys/fs/bpf")
PIN = BPFFS / "temper/hints"
STATS = Path("/run/scx/root/stats")
ONE_LAYER = ({"name": "all", "comment": "", "matches": [[]], "kind": {"Open": {}}},)
STRUCT_OPS = "map_type:\t26\n"
HIGH = 100_000
OPTIONS = ("--settings", str(SETTINGS))


def signal_engine(scene: Scene, number: signal.Signals) -> None:
    """Send the engine a signal from outside: that is the fault."""
    engine = scene.engine()
    scene.strike()
    os.kill(engine, number)


def kill_engine(scene: Scene) -> None:
    """Have the agent start another engine, which meets the fault."""
    signal_engine(scene, signal.SIGKILL)


def safe_mode(wish: str) -> None:
    """Ask for safe mode, or take it back, by the command."""
    ended = temper("safe-mode", wish, "--reason", "fault", *OPTIONS)
    claim(ended.returncode == 0, f"temper safe-mode {wish}: {ended.stdout}{ended.stderr}")


@contextmanager
def another_plan(scene: Scene) -> Iterator[None]:
    """Have a pod of another tier, so that the plan needs another layer."""
    payments = scene.pods["payments"]
    before, payments.priority = payments.priority, HIGH
    scene.list_pods()
    try:
        yield
    finally:
        payments.priority = before
        scene.list_pods()


@contextmanager
def caged_agent(scene: Scene) -> Iterator[Path]:
    """Have another agent, whose memory counts in a cgroup of its own from its start."""
    stop_in_order(scene)
    scene.start_agent()
    with caged(scene.agent.pid) as cage:
        scene.recover()
        yield cage


def claim_refused(code: int, words: str, settings: Path = SETTINGS) -> None:
    """Start an agent that must end with *code* and those *words*, and without a traceback."""
    ended = temper("agent", "--settings", str(settings))
    claim(ended.returncode == code, f"exit code {ended.returncode}: {ended.stderr}")
    claim(words in ended.stderr and "Traceback" not in ended.stderr, ended.stderr)


def stop_in_order(scene: Scene) -> None:
    """Stop the agent; claim that it ends with exit code 0."""
    code = scene.agent.stop()
    claim(code == 0, f"the agent ended with exit code {code}")


def nothing_left(scene: Scene) -> None:
    """Claim that a stop leaves only what is kept, and ``temper restore`` not even that."""
    left = leftovers(scene.empty, scene.known)
    claim(set(left) <= KEPT, f"left by the stop: {', '.join(left)}")
    ended = temper("restore", "--settings", str(SETTINGS))
    claim(ended.returncode == 0, f"temper restore ended with {ended.returncode}: {ended.stderr}")
    left = leftovers(scene.empty, scene.known)
    claim(not left, f"left after temper restore: {', '.join(left)}")


def steering(scene: Scene) -> dict[str, Any]:
    """Return what the agent says of its steering, once it has looked at the node."""
    told = scene.wait_for("an observation", lambda: scene.agent.ask("/observe").get("steering"))
    return dict(told)


def told_pods(scene: Scene) -> int:
    """Return how many pods the agent plans for."""
    return len(scene.agent.ask("/explain").get("pods", ()))


def rival(config: object = ONE_LAYER) -> list[str]:
    """Return the command of somebody else's scheduler: the same engine by another name."""
    program = OWN / "scx_rival"
    program.unlink(missing_ok=True)
    program.symlink_to(os.environ["FAULT_ENGINE"])
    return [str(program), f"f:{scratch('rival.json', json.dumps(config))}"]


@contextmanager
def stopped_rival() -> Iterator[int]:
    """Have somebody else's scheduler stopped while it loads, with its objects in the kernel."""
    with subprocess.Popen(rival(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            kernel.wait_until("the rival's map", lambda: STRUCT_OPS in _maps(process.pid), SAFE_S)
            process.send_signal(signal.SIGSTOP)
            claim(kernel.state() != "enabled", "the rival attached")
            yield process.pid
        finally:
            process.kill()


def _maps(pid: int) -> str:
    """Return what the kernel says of the descriptors of a process."""
    text = ""
    for descriptor in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(OSError):  # closed since the listing
            text += descriptor.read_text()
    return text


def scratch(name: str, text: str) -> Path:
    """Return a file of the suite's own with that *text*."""
    path = OWN / name
    path.write_text(text)
    return path
