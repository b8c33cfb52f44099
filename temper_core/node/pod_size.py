"""The CPU request and limit of a pod, and its QoS class, by Kubernetes' rules.

Facts: component-helpers ``resource.PodRequests`` and ``PodLimits``, the API server's defaulting,
and ``qos.ComputePodQOS``.
"""

from collections.abc import Iterable, Sequence

from attrs import frozen

from temper_core.node.pod_fields import JsonObject
from temper_core.quantities import cpu_millis, memory_bytes
from temper_core.records.pods import QosClass


@frozen
class CpuSize:
    """A request and a limit in millicores. ``None`` means no limit."""

    request: int = 0
    limit: int | None = None

    def plus(self, other: "CpuSize") -> "CpuSize":
        """Add up two sizes. The sum is unlimited if one of them is."""
        limited = self.limit is not None and other.limit is not None
        limit = (self.limit or 0) + (other.limit or 0) if limited else None
        return CpuSize(self.request + other.request, limit)

    def at_least(self, other: "CpuSize") -> "CpuSize":
        """Return the larger request and limit. The limit is ``None`` if one of them is."""
        limited = self.limit is not None and other.limit is not None
        limit = max(self.limit or 0, other.limit or 0) if limited else None
        return CpuSize(max(self.request, other.request), limit)


NOTHING = CpuSize(0, 0)


@frozen
class SizedContainer:
    """One container of the pod's spec with its size. A sidecar is always restarted."""

    spec: JsonObject
    size: CpuSize
    is_sidecar: bool = False


def container_size(resources: JsonObject) -> CpuSize:
    """Read a container's ``resources``. A missing request defaults to the limit."""
    request = resources.table("requests").quantity("cpu", cpu_millis)
    # Kubernetes sets no quota for a limit of 0.
    limit = resources.table("limits").quantity("cpu", cpu_millis) or None
    return CpuSize((limit or 0) if request is None else request, limit)


def memory_of(resources: JsonObject) -> tuple[int | None, int | None]:
    """Read the memory request and limit. A missing request defaults to the limit."""
    request = resources.table("requests").quantity("memory", memory_bytes)
    limit = resources.table("limits").quantity("memory", memory_bytes) or None
    return (limit if request is None else request), limit


def pod_size(
    spec: JsonObject,
    containers: Iterable[SizedContainer],
    init_containers: Sequence[SizedContainer],
    *,
    granted: int | None = None,
    initialised: bool,
) -> CpuSize:
    """Return the size of the whole pod. *granted* counts in place of a request of the pod's own.

    After its init containers have ended, a pod is the sum of its containers and sidecars. Before,
    it must also fit each init container together with the sidecars that started earlier.
    """
    total = sidecars = NOTHING
    for container in containers:
        total = total.plus(container.size)
    starting = NOTHING
    for container in init_containers:
        if container.is_sidecar:
            total, sidecars = total.plus(container.size), sidecars.plus(container.size)
            starting = starting.at_least(sidecars)
        else:
            starting = starting.at_least(sidecars.plus(container.size))
    if not initialised:
        total = total.at_least(starting)
    return _with_overhead(spec, _pod_level(spec, total, granted))


def _pod_level(spec: JsonObject, total: CpuSize, granted: int | None) -> CpuSize:
    """Apply ``spec.resources`` (Kubernetes 1.32), which overrides the sum over the containers."""
    if spec.values.get("resources") is None:
        return total
    resources = spec.table("resources")
    request = resources.table("requests").quantity("cpu", cpu_millis)
    limit = resources.table("limits").quantity("cpu", cpu_millis) or None
    if request is None:
        request = total.request or limit or 0
    elif granted is not None:
        request = granted
    return CpuSize(request, total.limit if limit is None else limit)


def _with_overhead(spec: JsonObject, size: CpuSize) -> CpuSize:
    overhead = spec.table("overhead").quantity("cpu", cpu_millis) or 0
    return CpuSize(size.request + overhead, None if size.limit is None else size.limit + overhead)


def computed_qos_class(spec: JsonObject, containers: Iterable[JsonObject]) -> QosClass:
    """Compute the class as the kubelet does, from CPU and memory of every container."""
    resources = spec.table("resources")
    if any(resources.values.get(part) for part in ("requests", "limits")):
        return _qos_class([spec])
    return _qos_class(containers)


def _qos_class(holders: Iterable[JsonObject]) -> QosClass:
    sizes = [_requests_and_limits(holder.table("resources")) for holder in holders]
    if not any(request or limit for pair in sizes for request, limit in pair):
        return QosClass.BEST_EFFORT
    if all(limit and request == limit for pair in sizes for request, limit in pair):
        return QosClass.GUARANTEED
    return QosClass.BURSTABLE


def _requests_and_limits(resources: JsonObject) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (request, limit) of CPU and of memory. A missing one is 0."""
    requests, limits = resources.table("requests"), resources.table("limits")
    cpu_limit = limits.quantity("cpu", cpu_millis) or 0
    memory_limit = limits.quantity("memory", memory_bytes) or 0
    cpu = requests.quantity("cpu", cpu_millis)
    memory = requests.quantity("memory", memory_bytes)
    return (
        (cpu_limit if cpu is None else cpu, cpu_limit),
        (memory_limit if memory is None else memory, memory_limit),
    )
