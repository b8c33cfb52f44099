"""The pods of the walk: their cgroups as the kubelet makes them, what they ask for, a PodList."""

import json
from pathlib import Path

from attrs import frozen

CGROUPS = Path("/sys/fs/cgroup")
KUBEPODS = CGROUPS / "kubepods.slice"
BURSTABLE = KUBEPODS / "kubepods-burstable.slice"
CONTROLLERS = "+cpu +cpuset +memory"


@frozen
class Pod:
    """One pod; ``asks`` are files of its cgroup, with what is written into them."""

    name: str
    number: int
    priority: int
    cpu: str
    asks: tuple[tuple[str, str], ...] = ()

    @property
    def uid(self):
        return f"a9eeae9e-0000-4000-8000-{self.number:012d}"

    @property
    def runtime_id(self):
        return f"{self.number:064x}"

    @property
    def cgroup(self):
        """The pod's cgroup under the kubelet's systemd driver."""
        return BURSTABLE / f"kubepods-burstable-pod{self.uid.replace('-', '_')}.slice"

    @property
    def container(self):
        """The cgroup of its container, where its processes are."""
        return self.cgroup / f"cri-containerd-{self.runtime_id}.scope"

    def start(self):
        """Make the cgroups, and write what the pod asks for."""
        self.container.mkdir(parents=True)
        for above in (KUBEPODS, BURSTABLE, self.cgroup):
            (above / "cgroup.subtree_control").write_text(CONTROLLERS)
        for file, text in self.asks:
            (self.cgroup / file).write_text(text)

    def manifest(self):
        """Return the Pod object as the API server would print it."""
        resources = {"requests": {"cpu": self.cpu}}
        running = {"name": "app", "containerID": f"containerd://{self.runtime_id}"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": "shop", "uid": self.uid},
            "spec": {
                "priority": self.priority,
                "containers": [{"name": "app", "image": "app:1", "resources": resources}],
            },
            "status": {
                "phase": "Running",
                "qosClass": "Burstable",
                "containerStatuses": [running],
            },
        }


PODS = (
    Pod("api", 1, 1_000_000, "2", (("cpu.weight", "79"),)),
    Pod("web", 2, 0, "500m", (("cpu.max", "150000 100000"),)),
    Pod("mixed", 3, -10, "100m", (("cpuset.cpus", "0-2"),)),
    Pod("noise", 4, -1000, "100m", (("cpu.weight", "3"),)),
)


def write_podlist(path):
    """Write all pods as ``kubectl get pods -A -o json`` prints them."""
    items = [pod.manifest() for pod in PODS]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
