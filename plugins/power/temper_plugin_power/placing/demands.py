"""A pod's demands on a node: CPUs, memory, GPUs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from temper_core import InputError, cpu_millis, memory_bytes

VENDORS = {
    "nvidia.com/gpu": "nvidia",
    "amd.com/gpu": "amd",
    "gpu.intel.com/i915": "intel",
}
SLICES = "nvidia.com/mig-"
UNNAMED_CORES = {"performance": 0.5, "standard": 0.25}
"""CPUs of a pod that names none, by its class."""


@frozen
class PodDemand:
    """The demand of a pod. *gpu_vendor* is empty without GPUs."""

    cores: float
    memory_bytes: float = 0.0
    gpus: int = 0
    gpu_vendor: str = ""


def demand_of(spec: Mapping[str, Any], workload_class: str) -> PodDemand:
    """Return the demand of a pod by its *spec*. A limit stands in for a missing request.

    A quantity that is invalid counts as none. The API server accepts no such pod.
    """
    containers = list(_resources(spec, "containers"))
    cores = sum(_quantity(each, "cpu", cpu_millis) for each in containers) / 1000
    gpus = [_gpus(each) for each in containers]
    first = [_gpus(each) for each in _resources(spec, "initContainers")]
    count = max(sum(count for count, _ in gpus), *(count for count, _ in first), 0)
    vendors = [vendor for _, vendor in (*reversed(gpus), *first) if vendor]
    return PodDemand(
        cores=cores or UNNAMED_CORES.get(workload_class, UNNAMED_CORES["standard"]),
        memory_bytes=sum(_quantity(each, "memory", memory_bytes) for each in containers),
        gpus=count,
        gpu_vendor=next(iter(vendors), ""),
    )


def _gpus(resources: Mapping[str, Any]) -> tuple[int, str]:
    """Return the GPUs of a container and their vendor. Slices of a GPU count as GPUs."""
    counts: Counter[str] = Counter()
    for key, vendor in _gpu_keys(resources).items():
        counts[vendor] += _quantity(resources, key, memory_bytes)
    return next(((count, vendor) for vendor, count in counts.items() if count > 0), (0, ""))


def _gpu_keys(resources: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the resources of a container that are GPUs, with their vendors."""
    named = (*_table(resources, "requests"), *_table(resources, "limits"))
    return {**VENDORS, **{key: "nvidia" for key in named if str(key).startswith(SLICES)}}


def _quantity(resources: Mapping[str, Any], key: str, read: Callable[[object], int]) -> int:
    """Return the request of *key*, else its limit, else 0."""
    for table in (_table(resources, "requests"), _table(resources, "limits")):
        try:
            value = read(table[key])
        except (KeyError, InputError):
            continue
        if value > 0:
            return value
    return 0


def _resources(spec: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    containers = spec.get(key)
    for container in containers if isinstance(containers, list) else ():
        if isinstance(container, Mapping):
            yield _table(container, "resources")


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key)
    return value if isinstance(value, Mapping) else {}
