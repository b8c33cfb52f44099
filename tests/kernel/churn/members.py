"""Pods that come, go and change, each with a process of three threads, one of them a helper."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workloads import CGROUPS

PROFILE_ANNOTATION = "temper.codes/workload-profile"
PROFILE = "churn"
# The engine moves a thread that blocks when it next wakes up, so nobody sleeps for long.
NAP_S = 0.1
HELPER = "bg-helper"
WORKER = "w-worker"


@dataclass
class Pod:
    """One pod of the list, and the threads it has had; ``profiled`` makes its helper yield."""

    number: int
    priority: int
    millis: int
    profiled: bool = False
    pid: int = 0
    cgroup: Path = field(init=False)

    def __post_init__(self) -> None:
        uid = self.uid.replace("-", "_")
        parent = CGROUPS / "kubepods.slice/kubepods-burstable.slice"
        self.cgroup = parent / f"kubepods-burstable-pod{uid}.slice"

    @property
    def uid(self) -> str:
        """The pod's uid as the API server would have made it."""
        return f"c4c4c4c4-0000-4000-8000-{self.number:012d}"

    @property
    def container(self) -> Path:
        """The cgroup of the pod's container, where its process is."""
        return self.cgroup / f"cri-containerd-{self.number:064x}.scope"

    def start(self) -> None:
        """Make the cgroups and start the process in it."""
        self.container.mkdir(parents=True)
        self.pid = os.fork()
        if self.pid == 0:
            _live(self.container)

    def end(self) -> None:
        """Kill the process and remove the cgroups."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for cgroup in (self.container, self.cgroup):
            cgroup.rmdir()

    def threads(self) -> dict[int, str]:
        """Return the names of its threads by their ids."""
        found = {}
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            found[int(task.name)] = (task / "comm").read_text().strip()
        return found

    def manifest(self) -> dict[str, object]:
        """Return the Pod object as the API server would print it."""
        requests = {"cpu": f"{self.millis}m"}
        annotations = {PROFILE_ANNOTATION: PROFILE} if self.profiled else {}
        return {
            "metadata": {
                "name": f"pod-{self.number}",
                "namespace": "churn",
                "uid": self.uid,
                "annotations": annotations,
            },
            "spec": {
                "priority": self.priority,
                "containers": [
                    {"name": "app", "image": "app:1", "resources": {"requests": requests}}
                ],
            },
            "status": {"phase": "Running", "qosClass": "Burstable"},
        }

    def wanted_layer(self, thread: str, layers: Sequence[str]) -> str:
        """Return where the plan wants a thread of that name, with *layers* in force."""
        if self.profiled and thread.startswith("bg-"):
            return "open"
        tier = "critical" if self.priority >= 1_000_000 else "normal"
        tier = "high" if tier == "normal" and self.priority >= 100_000 else tier
        return tier if self.priority >= 0 and tier in layers else "open"


def cpu_used_s(tid: int) -> float:
    """Return the CPU time of a thread."""
    return int(Path(f"/proc/{tid}/schedstat").read_text().split()[0]) / 1e9


def _live(container: Path) -> None:
    """Be the pod's process, for ever: enter the cgroup, start the threads, nap."""
    try:
        (container / "cgroup.procs").write_text(str(os.getpid()))
        for name in (HELPER, WORKER):
            threading.Thread(target=_nap, args=(name,), daemon=True).start()
        _nap("app")
    finally:
        os._exit(1)


def _nap(name: str) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
    while True:
        time.sleep(NAP_S)
