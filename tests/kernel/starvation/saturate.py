"""In the guest: attach the engine to one plan after the other, saturate it, and say who waited.

    saturate.py CASES ENGINE

CASES holds the plans; what was seen of each is a line of JSON on the standard output as soon as it
is known. Nothing is imported that takes time to load: a second here is several of the host.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

from workloads import CGROUPS, SYSTEM_CGROUP, Pod, end

Json = dict[str, Any]
STATE = Path("/sys/kernel/sched_ext/state")
STATS = "/var/run/scx/root/stats"
ERRORS = Path("/tmp/engine.errors")
PLAN = Path("/tmp/plan.json")
ATTACH_S = 300.0
WARM_UP_S = 1.5
POLL_S = 0.25
REASON_CHARACTERS = 200


class Engine:
    """A running engine, as Temper starts it but for a watchdog that is quicker to bite."""

    def __init__(self, program: str, layers: list[Json], watchdog_ms: int, max_exec_us: int):
        PLAN.write_text(json.dumps(layers))
        started = time.monotonic()
        with ERRORS.open("w") as errors:
            self._process = subprocess.Popen(
                ["nice", "-n", "-20", program, "--max-exec-us", str(max_exec_us), f"f:{PLAN}"],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "RUST_BACKTRACE": "0", "SCX_TIMEOUT_MS": str(watchdog_ms)},
            )
        while self.is_running and not self.is_attached and time.monotonic() - started < ATTACH_S:
            time.sleep(POLL_S)
        self.attach_s = time.monotonic() - started

    @property
    def is_attached(self) -> bool:
        """Whether the kernel schedules by it."""
        return STATE.read_text().strip() == "enabled"

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process.poll() is None

    @property
    def last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        lines = [line.strip() for line in ERRORS.read_text().splitlines() if line.strip()]
        return lines[-1][:REASON_CHARACTERS] if lines else ""

    def antistalls(self) -> int:
        """Return how often the engine itself had to serve a queue by force."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(10 * POLL_S)
            try:
                asked.connect(STATS)
                asked.sendall(b'{"req":"stats"}\n')
                answer = json.loads(asked.makefile().readline())
            except (OSError, ValueError):
                return -1
        return int(answer["args"]["resp"]["antistall"])

    def stop(self) -> None:
        """End it and wait."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)
        self._process.wait()


class SystemItself(Pod):
    """What the node needs to be one; no pod, but as late and as busy as one can be."""

    @property
    def container(self) -> Path:
        """Where the system's processes are."""
        return SYSTEM_CGROUP


class Tenants:
    """A pod for every layer, each with somebody who sleeps and tells how late it woke."""

    def __init__(self, names: list[str], cpus: int):
        self.pods = {name: Pod(name, 0, "1", number) for number, name in enumerate(names)}
        self.pods["system"] = SystemItself("system", 0)
        for pod in self.pods.values():
            pod.start(sleepers=1)
        self._cpus = cpus

    def saturate(self, wanted: str) -> None:
        """Let one layer want twice the CPUs that there are, or ``all`` but the system's do."""
        for name, pod in self.pods.items():
            if wanted == name or (wanted == "all" and name != "system"):
                pod.spin(2 * self._cpus)

    def measure(self, seconds: float, engine: Engine) -> Json:
        """Return by how many milliseconds each layer was late at most, for as long as it lasts."""
        sleepers = {name: pod.members[0] for name, pod in self.pods.items()}
        time.sleep(WARM_UP_S)
        for sleeper in sleepers.values():
            sleeper.measure()
        started = time.monotonic()
        while engine.is_running and time.monotonic() - started < seconds:
            time.sleep(POLL_S)
        late = {name: round(1000 * each.latest_s, 1) for name, each in sleepers.items()}
        for sleeper in sleepers.values():
            sleeper.doze()
        return {"seconds": round(time.monotonic() - started, 1), "late_ms": late}

    def rest(self) -> None:
        """End whoever is busy."""
        for pod in self.pods.values():
            pod.rest()

    def leave(self) -> None:
        """End everybody."""
        self.rest()
        end(pod.members[0].pid for pod in self.pods.values())


def judge(case: Json, program: str) -> Json:
    """Attach to the plan of *case* and go through its scenarios while the engine stays."""
    names = [name for name in case["peopled"] if name != "system"]
    tenants = Tenants(names, case["cpus"])
    engine = Engine(
        program, _addressed(case["layers"], tenants), case["watchdog_ms"], case["max_exec_us"]
    )
    row: Json = {**{key: case[key] for key in ("shape", "cpus")}, "scenarios": {}}
    row |= {"loads": engine.is_attached, "attach_s": round(engine.attach_s, 1)}
    for scenario in case["scenarios"]:
        if engine.is_running and engine.is_attached:
            tenants.saturate(scenario)
            measured = tenants.measure(case["seconds"], engine)
            tenants.rest()
            row["scenarios"][scenario] = {**measured, "antistall": engine.antistalls()}
    if not engine.is_running:
        row["ended"] = engine.last_words
    engine.stop()
    tenants.leave()
    return row


def _addressed(layers: list[Json], tenants: Tenants) -> list[Json]:
    """Let every layer match its tenant, whatever the plan's own matchers were."""
    for layer in layers[:-1]:
        name = layer["name"]
        if name == "system":
            layer["matches"] = [[{"IsKthread": True}], [{"CgroupPrefix": "init.scope/"}]]
        elif name == "open":
            layer["matches"] = [[{"CgroupPrefix": ""}]]
        else:
            home = tenants.pods[name].cgroup.relative_to(CGROUPS)
            layer["matches"] = [[{"CgroupPrefix": f"{home}/"}]]
    layers[-1]["matches"] = [[]]
    return layers


def main(cases: str, program: str) -> int:
    """Judge all cases, as a process of the system's own."""
    SYSTEM_CGROUP.mkdir(exist_ok=True)
    (SYSTEM_CGROUP / "cgroup.procs").write_text(str(os.getpid()))
    for case in json.loads(Path(cases).read_text()):
        sys.stdout.write(json.dumps(judge(case, program)) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
