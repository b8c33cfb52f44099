"""The signals of a workload over the window of a classification, from metrics."""

from attrs import frozen


@frozen
class Signals:
    """Signals of one workload. Percentages are 0 to 100, energies are joules over the window.

    A signal that was not measured is 0 or false, as the rules need no more. The exceptions are
    None: the utilisation without a CPU request or limit, and the evidence that few nodes have.
    """

    cpu_util_pct: float | None = 0.0
    """CPU usage by CPU request."""
    memory_pressure_pct: float = 0.0
    """Working set by memory limit: capacity, not bandwidth."""
    gpu_util_pct: float = 0.0
    cpu_bound_ratio: float = 0.0
    """Package energy by total energy."""
    memory_bound_ratio: float = 0.0
    """DRAM energy by package and DRAM energy."""
    has_kepler: bool = False
    total_energy_j: float = 0.0
    gpu_energy_j: float = 0.0
    is_gpu_dominant: bool = False
    is_energy_shared: bool = False
    """All zones are shared by CPU time, so that their ratios do not depend on the workload."""
    io_pressure: float | None = None
    """Share of the time in which some thread waited for I/O (PSI), 0 to 1."""
    memory_stall: float | None = None
    """Share of the time in which some thread waited for memory (PSI), 0 to 1."""
    ipc: float | None = None
    """Instructions per cycle."""
    llc_mpki: float | None = None
    """Misses of the last-level cache per 1,000 instructions."""

    @property
    def has_energy(self) -> bool:
        """Whether Kepler gave energy that depends on the workload."""
        return self.has_kepler and self.total_energy_j > 0 and not self.is_energy_shared
