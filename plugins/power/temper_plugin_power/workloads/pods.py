"""Pods with their measures."""

from attrs import field, frozen
from attrs.validators import and_, ge, le, optional

from temper_core import Pod

MOST = 1e18
"""Of any measure, so that their sums and products are finite."""


def _measure() -> float | None:
    """Return the field of a measure, which is 0 or more, or not known."""
    measure: float | None = field(default=None, validator=optional(and_(ge(0), le(MOST))))
    return measure


@frozen
class PodMeasures:
    """The measures of a pod over the window. None is a series that does not exist."""

    cpu_rate: float | None = _measure()
    """CPUs in use."""
    mem_working_set: float | None = _measure()
    """Bytes."""
    dcgm_gpu_util: float | None = _measure()
    """Percent, the average of its GPUs."""
    kepler_package_rate: float | None = _measure()
    """Watts, as the two below."""
    kepler_dram_rate: float | None = _measure()
    kepler_gpu_rate: float | None = _measure()
    cycles: float | None = _measure()
    """Per second, as the two below."""
    instructions: float | None = _measure()
    llc_misses: float | None = _measure()
    psi_io: float | None = _measure()
    """Share of the time in which some thread waited for I/O; the maximum of its containers."""
    psi_memory: float | None = _measure()
    """The same for memory."""
    run_wait: float | None = _measure()
    """Seconds that its threads waited for a CPU, per second."""
    threads: float | None = _measure()
    busiest_thread: float | None = _measure()
    """CPUs that the threads of its busiest name use."""

    @property
    def has_energy(self) -> bool:
        """Whether Kepler has a series of the pod."""
        rates = (self.kepler_package_rate, self.kepler_dram_rate, self.kepler_gpu_rate)
        return any(rate is not None for rate in rates)


@frozen
class MeasuredPod:
    """A pod that has not ended, with its measures."""

    pod: Pod
    node: str
    """Empty before the pod has one."""
    created_at: str
    """RFC 3339 in UTC. Empty if it is not known."""
    measures: PodMeasures = PodMeasures()

    @property
    def cpu_basis(self) -> float:
        """The CPUs that its usage is divided by: the request, else the limit, else 0."""
        return (self.pod.cpu_request_millis or self.pod.cpu_limit_millis or 0) / 1000

    @property
    def memory_limit_bytes(self) -> int:
        """The sum of its containers' memory limits. 0 without any."""
        return sum(each.memory_limit_bytes or 0 for each in self.pod.containers)
