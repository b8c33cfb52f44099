"""The evidence in the energy that Kepler attributes to pods.

Kepler 0.9 and older models the energy of each zone by counters of the processor. Kepler 0.10 and
newer shares every zone of a node by CPU time alone, so that the ratio of two zones is the same for
all pods of the node and has no information about any of them.
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
    """The power of a workload in watts, and whether its parts are evidence."""

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


@frozen
class Ratios:
    """The ratios of DRAM to package energy of a node's active pods."""

    pods: int
    spread: float
    """The largest minus the smallest, by the largest."""

    @property
    def are_one(self) -> bool:
        """Whether they are no evidence for any pod. A node with few active pods is not judged."""
        return self.pods >= LEAST_ACTIVE_PODS and self.spread < LEAST_SPREAD


def ratios_of(pods: Iterable[MeasuredPod]) -> Mapping[str, Ratios]:
    """Return the ratios by node. This checks an exporter, whatever its dialect."""
    ratios: Mapping[str, list[float]] = defaultdict(list)
    for pod in pods:
        package, dram = pod.measures.kepler_package_rate, pod.measures.kepler_dram_rate
        if package and dram:
            ratios[pod.node].append(dram / package)
    return {node: Ratios(len(found), _spread(found)) for node, found in ratios.items()}


def nodes_of_one_ratio(pods: Iterable[MeasuredPod]) -> frozenset[str]:
    """Return the nodes on which the energy of all active pods has one ratio."""
    return frozenset(node for node, ratios in ratios_of(pods).items() if ratios.are_one)


def _spread(ratios: Sequence[float]) -> float:
    largest = max(ratios)
    return (largest - min(ratios)) / largest if largest else 0.0
