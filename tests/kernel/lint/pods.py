"""Pods with workers that do what a test wants: busy to a degree, bound, or of another policy."""

import os
import signal
import time
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workloads import CGROUPS

PROFILE_ANNOTATION = "temper.codes/workload-profile"
CONTROLLERS = "+cpu +cpuset"
KUBEPODS = CGROUPS / "kubepods.slice"
BURSTABLE = KUBEPODS / "kubepods-burstable.slice"
# Whoever changes its cgroup is sorted into its layer when it next wakes up, so it must sleep once.
SETTLE_S = 0.2
CYCLE_S = 0.02
# Work between two looks at the clock, of plain instructions: the emulator is quickest at those.
BLOCK = bytes(16384)


@dataclass(frozen=True)
class Manner:
    """How a worker works: its share of a CPU, the CPUs it is bound to, whether it is real-time."""

    duty: float = 1.0
    cpus: Collection[int] = ()
    fifo: bool = False


SPINNING = Manner()


@dataclass
class Pod:
    """One pod of the list; ``cpu`` is its request."""

    name: str
    priority: int
    cpu: str
    number: int
    profile: str = ""
    workers: list[int] = field(default_factory=list)

    @property
    def uid(self) -> str:
        """The pod's uid as the API server would have made it."""
        return f"11171171-0000-4000-8000-{self.number:012d}"

    @property
    def cgroup(self) -> Path:
        """The pod's cgroup under the kubelet's systemd driver."""
        return BURSTABLE / f"kubepods-burstable-pod{self.uid.replace('-', '_')}.slice"

    @property
    def container(self) -> Path:
        """The cgroup of the pod's container, where its processes are."""
        return self.cgroup / f"cri-containerd-{self.number:064x}.scope"

    def start(self) -> None:
        """Make the cgroups, as the kubelet does."""
        self.container.mkdir(parents=True)
        for above in (KUBEPODS, BURSTABLE, self.cgroup):
            (above / "cgroup.subtree_control").write_text(CONTROLLERS)

    def ask(self, **limits: str) -> None:
        """Write what the pod asks of the kernel: ``cpu_max`` for ``cpu.max``, and so on."""
        for key, value in limits.items():
            (self.cgroup / key.replace("_", ".", 1)).write_text(value)

    def work(self, name: str, manner: Manner = SPINNING) -> int:
        """Start a worker of that name; return its process id."""
        pid = os.fork()
        if pid == 0:
            _work(self.container, name, manner)
        self.workers.append(pid)
        return pid

    def rest(self) -> None:
        """End the workers."""
        end(self.workers)
        self.workers = []

    def manifest(self) -> dict[str, object]:
        """Return the Pod object as the API server would print it."""
        annotations = {PROFILE_ANNOTATION: self.profile} if self.profile else {}
        resources = {"requests": {"cpu": self.cpu}}
        return {
            "metadata": {
                "name": self.name,
                "namespace": "shop",
                "uid": self.uid,
                "annotations": annotations,
            },
            "spec": {
                "priority": self.priority,
                "containers": [{"name": "app", "image": "app:1", "resources": resources}],
            },
            "status": {"phase": "Running", "qosClass": "Burstable"},
        }


def end(pids: Iterable[int]) -> None:
    """Kill processes of ours and wait until they are gone."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _work(container: Path, name: str, manner: Manner) -> None:
    """Be a worker of the container, for ever."""
    try:
        (container / "cgroup.procs").write_text(str(os.getpid()))
        Path("/proc/self/comm").write_text(name)
        time.sleep(SETTLE_S)
        if manner.cpus:
            os.sched_setaffinity(0, manner.cpus)
        if manner.fifo:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while True:
            _cycle(manner.duty)
    finally:
        os._exit(1)


def _cycle(duty: float) -> None:
    """Use a share of one CPU for a moment, whoever else wants it, and sleep for the others."""
    enough = time.thread_time() + duty * CYCLE_S
    while time.thread_time() < enough:
        zlib.crc32(BLOCK)
    if duty < 1.0:
        time.sleep((1.0 - duty) * CYCLE_S)
