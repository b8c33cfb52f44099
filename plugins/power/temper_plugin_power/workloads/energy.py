"""What the energy that Kepler attributes to pods can say about them.

Kepler 0.9 and older models the energy of each zone by counters of the processor. Kepler 0.10 and
newer shares every zone of a node by CPU time alone, so that the ratio of two zones is the same for
all pods of the node and says nothing about any of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from attrs import frozen

from temper_plugin_power.workloads.pods import MeasuredPod

LEAST_ACTIVE_PODS = 5
LEAST_SPREAD = 0.01


class Dialect(StrEnum):
    """How the exporter of energy attributes it."""

    OLD = "kepler-0.9"
    NEW = "kepler-0.10"
    NONE = "none"


@frozen
class Energy:
    """The power of a workload in watts, and whether its parts say anything."""

    package_w: float
    dram_w: float
    gpu_w: float
    is_shared: bool
    """The zones are shared by CPU time."""

    @property
    def total_w(self) -> float:
        """The sum of the parts."""
        return self.package_w + self.dram_w + self.gpu_w


def energy_of(
    pods: Iterable[MeasuredPod], dialect: Dialect, shared_nodes: frozenset[str]
) -> Energy:
    """Return the energy of a workload. *shared_nodes* are those of ``nodes_of_one_ratio``."""
    measured = [pod for pod in pods if dialect is not Dialect.NONE]
    package = sum(pod.measures.kepler_package_rate or 0.0 for pod in measured)
    dram = sum(pod.measures.kepler_dram_rate or 0.0 for pod in measured)
    gpu = sum(pod.measures.kepler_gpu_rate or 0.0 for pod in measured)
    is_constant = dialect is Dialect.NEW or any(pod.node in shared_nodes for pod in measured)
    return Energy(package, dram, gpu, is_constant and package + dram > 0)


def nodes_of_one_ratio(pods: Iterable[MeasuredPod]) -> frozenset[str]:
    """Return the nodes on which DRAM and package energy of all active pods have one ratio.

    This is a check of the exporter, whatever its dialect. A node with few active pods is not
    judged.
    """
    ratios: Mapping[str, list[float]] = defaultdict(list)
    for pod in pods:
        package, dram = pod.measures.kepler_package_rate, pod.measures.kepler_dram_rate
        if package and dram:
            ratios[pod.node].append(dram / package)
    return frozenset(node for node, found in ratios.items() if _is_one(found))


def _is_one(ratios: Sequence[float]) -> bool:
    spread = max(ratios) - min(ratios)
    return len(ratios) >= LEAST_ACTIVE_PODS and spread < LEAST_SPREAD * max(ratios)
