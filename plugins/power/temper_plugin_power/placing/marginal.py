"""The cost of a pod on a node: watts, stress, and GPUs that idle beside it."""

from attrs import frozen

from temper_plugin_power.numbers import clamped
from temper_plugin_power.operating.twin import (
    REFERENCE_NODE_WATTS,
    REFERENCE_RACK_WATTS,
    STRESS_AT_REFERENCE,
    Hardware,
)
from temper_plugin_power.placing.demands import PodDemand

GIB = 1 << 30
MEMORY_SHARE, MOST_MEMORY = 0.01, 1.3
LEAST_NODE_WATTS, WATTS_PER_CORE = 150.0, 3.5
GPU_WATTS = {"nvidia": 350.0, "amd": 400.0}
OTHER_GPU_WATTS = 350.0
MOST_WASTE_WATTS = 300.0


@frozen
class Coefficients:
    """The numbers that an operator may choose."""

    cpu_util: float = 0.7
    gpu_util_standard: float = 0.65
    gpu_util_performance: float = 0.85
    idle_gpu_watts: float = 60.0
    reference_node_watts: float = REFERENCE_NODE_WATTS
    reference_rack_watts: float = REFERENCE_RACK_WATTS


@frozen
class Impact:
    """The load that a pod adds to a node."""

    watts: float
    cooling_delta: float
    psu_delta: float
    waste_watts: float
    """Of GPUs that idle beside a pod without one."""

    def penalty(self, pue: float | None) -> float:
        """Return the points to subtract. *pue* multiplies the watts, if it was measured."""
        watts = self.watts * max(1.0, pue or 1.0)
        return (
            clamped(watts / 20, 0, 20)
            + clamped(self.cooling_delta * 0.6, 0, 20)
            + clamped(self.psu_delta * 0.4, 0, 15)
            + clamped(self.waste_watts / 10, 0, 20)
        )


def impact_of(
    demand: PodDemand,
    workload_class: str,
    hardware: Hardware,
    coefficients: Coefficients,
) -> Impact:
    """Return the load that a pod with that *demand* adds to a node."""
    watts = _cpu_watts(demand, hardware, coefficients)
    watts += _gpu_watts(demand, workload_class, hardware, coefficients)
    is_wasted = demand.gpus == 0 and hardware.has_gpu
    waste = hardware.gpus * coefficients.idle_gpu_watts if is_wasted else 0.0
    return Impact(
        watts=watts,
        cooling_delta=clamped(watts / coefficients.reference_node_watts * STRESS_AT_REFERENCE),
        psu_delta=clamped(watts / coefficients.reference_rack_watts * 100),
        waste_watts=min(waste, MOST_WASTE_WATTS),
    )


def _cpu_watts(demand: PodDemand, hardware: Hardware, coefficients: Coefficients) -> float:
    known = hardware.max_watts_per_socket * hardware.sockets
    most = known if known > 0 else max(LEAST_NODE_WATTS, WATTS_PER_CORE * hardware.cores)
    share = clamped(demand.cores / max(1, hardware.cores), 0, 1)
    memory = clamped(1 + demand.memory_bytes / GIB * MEMORY_SHARE, 1, MOST_MEMORY)
    return most * coefficients.cpu_util * share * memory


def _gpu_watts(
    demand: PodDemand, workload_class: str, hardware: Hardware, coefficients: Coefficients
) -> float:
    if not hardware.has_gpu:
        return 0.0
    is_performance = workload_class == "performance"
    util = coefficients.gpu_util_performance if is_performance else coefficients.gpu_util_standard
    unknown = GPU_WATTS.get(demand.gpu_vendor, OTHER_GPU_WATTS)
    most = hardware.max_watts_per_gpu if hardware.max_watts_per_gpu > 0 else unknown
    return demand.gpus * most * util
