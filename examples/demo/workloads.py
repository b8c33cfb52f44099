"""Pods without a cluster: their cgroups as the kubelet makes them, processes, and a PodList."""

import json
import mmap
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
SYSTEM_CGROUP = CGROUPS / "init.scope"
# Seconds of sleep while a sleeper is measured, and otherwise: the emulator is slow.
MEASURED_S = 0.02
UNMEASURED_S = 0.5
# A process that changes its cgroup gets its layer when it next wakes up, so it must sleep once.
SETTLE_S = 0.2
# Seconds of work of a sleeper after each sleep, if it works at all.
BURST_S = 0.02


@dataclass
class Pod:
    """One pod of the list. ``cpu`` is its request and limit, empty for best effort."""

    name: str
    priority: int
    cpu: str = ""
    number: int = 0
    members: list["Sleeper"] = field(default_factory=list)
    spinners: list[int] = field(default_factory=list)

    @property
    def uid(self) -> str:
        """The pod's uid as the API server would have made it."""
        return f"5c0ffee5-0000-4000-8000-{self.number:012d}"

    @property
    def cgroup(self) -> Path:
        """The pod's cgroup under the kubelet's systemd driver."""
        qos = "burstable" if self.cpu else "besteffort"
        uid = self.uid.replace("-", "_")
        parent = CGROUPS / "kubepods.slice" / f"kubepods-{qos}.slice"
        return parent / f"kubepods-{qos}-pod{uid}.slice"

    @property
    def container(self) -> Path:
        """The cgroup of the pod's container, where its processes are."""
        return self.cgroup / f"cri-containerd-{self.number:064x}.scope"

    def start(self, sleepers: int = 2) -> None:
        """Make the cgroups and start the pod's ordinary processes."""
        self.container.mkdir(parents=True, exist_ok=True)
        self.members = [Sleeper(self.container, self.name) for _ in range(sleepers)]

    def spin(self, count: int) -> None:
        """Let the pod try to use *count* CPUs from now on."""
        self.spinners = [_fork(self.container, "spinner", _spin) for _ in range(count)]

    def rest(self) -> None:
        """End the spinners."""
        end(self.spinners)
        self.spinners = []

    def manifest(self) -> dict[str, object]:
        """Return the Pod object as the API server would print it."""
        resources = {"requests": {"cpu": self.cpu}} if self.cpu else {}
        return {
            "metadata": {"name": self.name, "namespace": "shop", "uid": self.uid},
            "spec": {
                "priority": self.priority,
                "containers": [{"name": "app", "image": "app:1", "resources": resources}],
            },
            "status": {"phase": "Running", "qosClass": "Burstable" if self.cpu else "BestEffort"},
        }


class Sleeper:
    """A process that measures how late it wakes from sleep. It sleeps longer when not measured.

    It can also work after each sleep.
    """

    def __init__(self, cgroup: Path, name: str) -> None:
        # next wake-up, length of the sleep, longest delay, number of wake-ups, work after each
        self._shared = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
        self.doze()
        self.pid = _fork(cgroup, name, self._sleep)

    def measure(self) -> None:
        """Begin a new measurement."""
        self._shared[1] = MEASURED_S
        self._shared[2] = self._shared[3] = 0.0

    def doze(self) -> None:
        """Sleep longer from now on. The last measurement can still be read."""
        self._shared[1] = UNMEASURED_S
        self._shared[4] = 0.0

    def work_on(self, cpu: int, sleep_s: float) -> None:
        """Work on that CPU from now on, and sleep that long after each burst."""
        os.sched_setaffinity(self.pid, {cpu})
        self._shared[1], self._shared[4] = sleep_s, BURST_S

    def work_no_more(self) -> None:
        """Doze again, on any CPU."""
        self.doze()
        os.sched_setaffinity(self.pid, range(os.cpu_count() or 1))

    @property
    def woken(self) -> int:
        """Number of wake-ups in this measurement."""
        return int(self._shared[3])

    @property
    def latest_s(self) -> float:
        """The longest delay, including a current one."""
        due = self._shared[0]
        return max(self._shared[2], time.monotonic() - due if due else 0.0)

    def _sleep(self) -> None:
        while True:
            due = self._shared[0] = time.monotonic() + self._shared[1]
            time.sleep(max(0.0, due - time.monotonic()))
            self._shared[2] = max(self._shared[2], time.monotonic() - due)
            self._shared[3] += 1
            ends = time.monotonic() + self._shared[4]
            while time.monotonic() < ends:
                pass


class Crowd:
    """All processes on the node: the pods by name, and a system process."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.pods = {pod.name: pod for pod in pods}
        for number, pod in enumerate(self.pods.values()):
            pod.number = number
            pod.start()
        self._system = Sleeper(SYSTEM_CGROUP, "kubelet")

    @property
    def sleepers(self) -> list[Sleeper]:
        """All sleepers, the system's first."""
        return [self._system, *(member for pod in self.pods.values() for member in pod.members)]

    def measure(self) -> None:
        """Begin a new measurement of all sleepers."""
        for sleeper in self.sleepers:
            sleeper.measure()

    def latest(self) -> dict[str, float]:
        """End the measurement. Return the longest delay of each in seconds."""
        late = {pod.name: max(s.latest_s for s in pod.members) for pod in self.pods.values()}
        for sleeper in self.sleepers:
            sleeper.doze()
        return {"system": self._system.latest_s, **late}

    @property
    def is_well(self) -> bool:
        """Whether all are alive and have been awake since the measurement began."""
        return all(sleeper.woken and _is_alive(sleeper.pid) for sleeper in self.sleepers)

    def end(self) -> None:
        """Kill all processes."""
        for pod in self.pods.values():
            pod.rest()
        end(sleeper.pid for sleeper in self.sleepers)


def end(pids: Iterable[int]) -> None:
    """Kill child processes and wait until they have ended."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def write_podlist(path: Path, pods: Iterable[Pod]) -> None:
    """Write the pods as ``kubectl get pods -A -o json`` prints them, in one step."""
    items = [{"apiVersion": "v1", "kind": "Pod", **pod.manifest()} for pod in pods]
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    part.rename(path)


def _is_alive(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG) == (0, 0)


def _spin() -> None:
    time.sleep(SETTLE_S)
    while True:
        pass


def _fork(cgroup: Path, name: str, body: Callable[[], None]) -> int:
    """Start a process in *cgroup* that runs *body* forever."""
    cgroup.mkdir(exist_ok=True)
    pid = os.fork()
    if pid:
        return pid
    try:
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))
        Path("/proc/self/comm").write_text(name)
        body()
    finally:
        os._exit(1)
