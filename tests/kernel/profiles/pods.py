"""Pods of several containers: cgroups as the kubelet makes them, and programs in them."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workloads import CGROUPS

BURSTABLE = CGROUPS / "kubepods.slice/kubepods-burstable.slice"
IDS_PER_POD = 16
ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True)
class Container:
    """What a manifest says of a container; ``cpu`` is its request."""

    name: str
    image: str
    cpu: str

    @property
    def spec(self) -> dict[str, object]:
        """The container as it stands in the Pod's ``spec``."""
        return {
            "name": self.name,
            "image": self.image,
            "resources": {"requests": {"cpu": self.cpu}},
        }


@dataclass
class Pod:
    """One pod of the list."""

    name: str
    number: int
    priority: int
    containers: Sequence[Container]
    programs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def uid(self) -> str:
        """The pod's uid as the API server would have made it."""
        return f"9f0f11e5-0000-4000-8000-{self.number:012d}"

    def cgroup(self, container: Container) -> Path:
        """Return the container's cgroup under the kubelet's systemd driver and containerd."""
        uid = self.uid.replace("-", "_")
        pod = BURSTABLE / f"kubepods-burstable-pod{uid}.slice"
        return pod / f"cri-containerd-{self._id(container)}.scope"

    @property
    def names(self) -> list[str]:
        """The containers' names."""
        return [container.name for container in self.containers]

    def tids(self, name: str) -> set[int]:
        """Return the threads that are in the container of that name, by the kernel."""
        threads = self.cgroup(self._named(name)) / "cgroup.threads"
        return set(map(int, threads.read_text().split()))

    def start(self) -> None:
        """Make the cgroups."""
        for container in self.containers:
            self.cgroup(container).mkdir(parents=True)

    def run(self, name: str, command: Sequence[str | Path], log: Path) -> int:
        """Start a program in the container of that name; return its process id."""
        container = self._named(name)
        with log.open("ab") as output:
            program = subprocess.Popen(
                ["/bin/sh", "-c", ENTER, self.cgroup(container), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.programs.append(program)
        return program.pid

    def pause(self) -> None:
        """Let whatever is in the pod stand still: the emulator has little to give."""
        for container in self.containers:
            (self.cgroup(container) / "cgroup.freeze").write_text("1")

    def end(self) -> None:
        """Kill whatever is in the pod."""
        for container in self.containers:
            (self.cgroup(container) / "cgroup.kill").write_text("1")
        for program in self.programs:
            program.kill()
            program.wait()

    def manifest(self) -> dict[str, object]:
        """Return the Pod object as the API server would print it."""
        ids = [
            {"name": each.name, "containerID": f"containerd://{self._id(each)}"}
            for each in self.containers
        ]
        return {
            "metadata": {"name": self.name, "namespace": "shop", "uid": self.uid},
            "spec": {
                "priority": self.priority,
                "containers": [each.spec for each in self.containers],
            },
            "status": {"phase": "Running", "qosClass": "Burstable", "containerStatuses": ids},
        }

    def _named(self, name: str) -> Container:
        return self.containers[self.names.index(name)]

    def _id(self, container: Container) -> str:
        return f"{self.number * IDS_PER_POD + list(self.containers).index(container):064x}"
