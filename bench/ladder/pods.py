"""The ladder's two pods: their cgroups as the kubelet makes them, and the PodList."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from attrs import frozen

PERIOD_US = 100_000
PROFILE_ANNOTATION = "temper.codes/workload-profile"
ENTER = 'echo 0 >"$0/cgroup.procs" && exec "$@"'
NAMESPACE = "ladder"
STOPPED = "T"
"""The state of a process that SIGSTOP has stopped, in proc(5)."""
LOOK_S = 0.001


@frozen
class Pod:
    """A pod of one container. Request and limit are in millicores, 0 for none."""

    name: str
    number: int
    priority: int
    request: int = 0
    limit: int = 0
    profile: str = ""

    @property
    def uid(self) -> str:
        """The uid as the API server would have made it."""
        return f"1adde4ad-0000-4000-8000-{self.number:012d}"

    @property
    def qos(self) -> str:
        """The QoS class in Kubernetes' spelling."""
        return "Burstable" if self.request or self.limit else "BestEffort"

    @property
    def container(self) -> Path:
        """The container's cgroup under systemd's driver and containerd, from the root."""
        qos, uid = self.qos.lower(), self.uid.replace("-", "_")
        parent = Path(f"kubepods.slice/kubepods-{qos}.slice/kubepods-{qos}-pod{uid}.slice")
        return parent / f"cri-containerd-{self.number:064x}.scope"

    def manifest(self) -> dict[str, object]:
        """Return the Pod object as the API server would print it."""
        sizes = {"requests": self.request, "limits": self.limit}
        resources = {key: {"cpu": f"{size}m"} for key, size in sizes.items() if size}
        annotations = {PROFILE_ANNOTATION: self.profile} if self.profile else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "uid": self.uid,
                "annotations": annotations,
            },
            "spec": {
                "priority": self.priority,
                "containers": [{"name": "app", "image": "ladder:1", "resources": resources}],
            },
            "status": {"phase": "Running", "qosClass": self.qos},
        }


def podlist(pods: Iterable[Pod]) -> str:
    """Return the pods as ``kubectl get pods -A -o json`` prints them."""
    items = [pod.manifest() for pod in pods]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def weight(millicores: int) -> int:
    """Return the ``cpu.weight`` of a request, by the formula of KEP-2254."""
    shares = max(2, millicores * 1024 // 1000)
    return 1 + (shares - 2) * 9999 // 262142


class Cgroups:
    """Makes and removes cgroups below *root*, which is a cgroup v2 with the cpu controller."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: list[Path] = []

    def make(self, path: Path) -> Path:
        """Make a cgroup that has the cpu controller. Return its absolute path."""
        parent = self._root
        for part in path.parts:
            (parent / "cgroup.subtree_control").write_text("+cpu")
            parent /= part
            if not parent.exists():
                parent.mkdir()
                self._made.append(parent)
        return parent

    def make_pod(self, pod: Pod) -> Path:
        """Make a pod's cgroups with the weights and the quota of the kubelet."""
        container = self.make(pod.container)
        for cgroup in (container, container.parent):
            (cgroup / "cpu.weight").write_text(str(weight(pod.request)))
            quota = pod.limit * PERIOD_US // 1000 if pod.limit else "max"
            (cgroup / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        return container

    def weigh_classes(self, pods: Iterable[Pod], cpus: int) -> None:
        """Give the cgroups above the pods the weights that the kubelet gives them."""
        slices = self._root / "kubepods.slice"
        requested = {"Burstable": 0, "BestEffort": 0}
        for pod in pods:
            requested[pod.qos] += pod.request
        (slices / "cpu.weight").write_text(str(weight(cpus * 1000)))
        for qos, millicores in requested.items():
            cgroup = self.make(Path(f"kubepods.slice/kubepods-{qos.lower()}.slice"))
            (cgroup / "cpu.weight").write_text(str(weight(millicores)))

    def remove(self) -> None:
        """Remove those that it made."""
        for cgroup in reversed(self._made):
            with suppress(OSError):
                cgroup.rmdir()


@contextmanager
def running(
    cgroup: Path, command: Iterable[str], log: Path | None = None
) -> "Iterator[subprocess.Popen[str]]":
    """Run a program in a cgroup, its output in a pipe or a log. Kill it at the end."""
    with log.open("a") if log else nullcontext() as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", ENTER, str(cgroup), *command],
            stdin=subprocess.PIPE,
            stdout=output or subprocess.PIPE,
            stderr=output,
            text=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def halting(pid: int) -> Iterator[None]:
    """Stop a process during the block, which begins when it is stopped."""
    os.kill(pid, signal.SIGSTOP)
    try:
        while _state(pid) != STOPPED:
            time.sleep(LOOK_S)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
