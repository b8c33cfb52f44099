"""Find the pod and the container that a cgroup belongs to."""

from collections.abc import Iterable

from temper_core.node.cgroup_names import CgroupKind, identify
from temper_core.records.pods import Container, Pod


class PodIndex:
    """The pods of the node by cgroup path, uid and runtime id. Rebuilt when the pods change."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._by_path: dict[str, Pod] = {}
        self._by_uid: dict[str, Pod] = {}
        self._containers: dict[str, Container] = {}
        for pod in pods:
            self._by_uid[pod.uid] = pod
            for path in pod.cgroups:
                self._by_path.setdefault(path.strip("/"), pod)
            for container in pod.containers:
                if container.runtime_id:
                    self._containers[container.runtime_id] = container

    def find(self, cgroup_path: str) -> Pod | None:
        """Return the pod with the longest path above or at *cgroup_path*.

        If no pod has such a path, the uid in the path decides, in any hierarchy's spelling. It does
        not decide for a pod with known paths: whoever has cgroups of its own may choose that name.
        """
        path = cgroup_path.strip("/")
        while path:
            if path in self._by_path:
                return self._by_path[path]
            path = path.rpartition("/")[0]
        identity = identify(cgroup_path)
        pod = self._by_uid.get(identity.uid or identity.runtime_id)
        return None if pod and pod.cgroups else pod

    def container(self, cgroup_path: str) -> Container | None:
        """Return the container that *cgroup_path* belongs to, by its runtime id."""
        runtime_id = identify(cgroup_path).runtime_id
        return self._containers.get(runtime_id) if runtime_id else None

    def container_name(self, cgroup_path: str) -> str:
        """Return the container's name, else its short runtime id, else an empty string."""
        identity = identify(cgroup_path)
        if identity.kind not in (CgroupKind.POD, CgroupKind.CONTAINER):
            return ""
        container = self._containers.get(identity.runtime_id)
        return container.name if container and container.name else identity.runtime_id[:12]
