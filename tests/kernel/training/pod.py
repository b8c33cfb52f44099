"""A pod with a served process and noisy ones, which work only while they are told to."""

import json
import os
import signal
import time
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup/train-test")
NOISY, SERVED = "noise", "serve"
NOISY_PROCESSES = 3
ROUND_S = 0.002
WORK_TURNS = 300
NOISE_LASTS_S = 0.5
MEASURED_S = 0.4
PROFILE = f"""
schema_version = 1
id = "served"
[[thread_groups]]
name = "noise"
match = [{{ comm_prefix = "{NOISY}-" }}]
treatment = "yield"
[[thread_groups]]
name = "rest"
treatment = "normal"
"""


class Child:
    """A process of the pod. A line to ``orders`` has it work once, and it answers with a line."""

    def __init__(self, name: str) -> None:
        self.name = name
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._orders)
            _live(name, orders, answers)
        os.close(orders)
        os.close(answers)

    def begin(self) -> None:
        """Have it work once."""
        os.write(self._orders, b"\n")

    def answer(self) -> float:
        """Wait until it has worked. Return what it measured."""
        return float(json.loads(os.read(self._answers, 100)))

    def end(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Pod:
    """The processes of the pod in their cgroup."""

    def __init__(self) -> None:
        CGROUP.mkdir(exist_ok=True)
        self._noisy = [Child(f"{NOISY}-{number}") for number in range(NOISY_PROCESSES)]
        self._served = Child(SERVED)

    def noisy(self) -> list[int]:
        """Return the noisy processes."""
        return [child.pid for child in self._noisy]

    def served(self) -> list[int]:
        """Return the served process."""
        return [self._served.pid]

    def begin(self) -> None:
        """Begin the noise, and the measurement beside it."""
        for child in (*self._noisy, self._served):
            child.begin()

    def result(self) -> float:
        """Return the mean time of a round in us, when the noise has ended."""
        value = self._served.answer()
        for child in self._noisy:
            child.answer()
        return value

    def end(self) -> None:
        """Kill all of it."""
        for child in (*self._noisy, self._served):
            child.end()


def _live(name: str, orders: int, answers: int) -> None:
    """Be a process of the pod until the pipe of its orders ends."""
    try:
        (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
        Path("/proc/self/comm").write_text(name)
        work = _spun if name.startswith(NOISY) else _served
        while os.read(orders, 1):
            os.write(answers, json.dumps(work()).encode())
    finally:
        os._exit(0)


def _spun() -> float:
    """Use a CPU for a while."""
    ends = time.monotonic() + NOISE_LASTS_S
    while time.monotonic() < ends:
        pass
    return 0.0


def _served() -> float:
    """Sleep and work in turn. Return the mean time of a round in us."""
    begun, rounds = time.monotonic(), 0
    while time.monotonic() < begun + MEASURED_S:
        time.sleep(ROUND_S)
        for _ in range(WORK_TURNS):
            pass
        rounds += 1
    return 1e6 * (time.monotonic() - begun) / rounds
