"""The model of a node: power, stress of cooling and supply, headroom, density."""

from attrs import frozen

from temper_plugin_power.numbers import clamped

FULL_PCT = 100.0
REFERENCE_NODE_WATTS = 4000.0
REFERENCE_RACK_WATTS = 50_000.0
REFERENCE_CORES, REFERENCE_GPUS = 192, 8
STRESS_AT_REFERENCE = 80.0
MILD_CELSIUS, STRESS_PER_DEGREE = 20.0, 0.5
BEST_PUE, PUE_OF_FULL_STRESS = 1.05, 0.35
HIGH_STRESS, SOME_STRESS = 70, 50


@frozen
class Hardware:
    """The hardware of a node. 0 is not known, or none."""

    sockets: int = 0
    cores: int = 0
    max_watts_per_socket: float = 0.0
    has_gpu: bool = False
    gpus: int = 0
    max_watts_per_gpu: float = 0.0
    min_watts_per_socket: float = 0.0
    """The least power cap of a socket, as below that of a GPU."""
    min_watts_per_gpu: float = 0.0


@frozen
class Situation:
    """The state in force on a node, and around it."""

    profile: str
    """performance, eco or unknown."""
    is_draining: bool = False
    cpu_cap_pct: float = 0.0
    """Of the maximum; 0 or less is no cap."""
    gpu_cap_pct: float = 0.0
    ambient_celsius: float = 0.0
    power_watts: float = 0.0
    """Of the rack, or of what *capacity_watts* supplies. 0 is not known."""
    capacity_watts: float = REFERENCE_RACK_WATTS
    measured_pue: float | None = None


@frozen
class Twin:
    """The state of a node by the model. All scores are 0 to 100."""

    schedulable_class: str
    headroom: float
    cooling_stress: float
    psu_stress: float
    cpu_pct: float
    gpu_pct: float
    density: float
    pue: float
    measured_pue: float | None = None
    """By the facility. None is not known."""

    @property
    def is_stressed(self) -> bool:
        """Whether workloads that may be moved had better be elsewhere."""
        return self.stress > HIGH_STRESS

    @property
    def stress(self) -> float:
        """The larger one of cooling stress and supply stress."""
        return max(self.cooling_stress, self.psu_stress)

    @property
    def pressure(self) -> str:
        """How urgently workloads that may be moved should leave: low, medium or high."""
        if self.schedulable_class == "draining" or self.is_stressed:
            return "high"
        return "medium" if self.stress > SOME_STRESS else "low"


def twin_of(hardware: Hardware, situation: Situation) -> Twin:
    """Return the state of a node. The model is linear, and follows from no measurement."""
    cpu_pct = _cap(situation.cpu_cap_pct)
    gpu_pct = _cap(situation.gpu_cap_pct)
    cooling = _cooling_stress(node_watts(hardware, cpu_pct, gpu_pct), situation.ambient_celsius)
    known = situation.profile if situation.profile in ("performance", "eco") else "unknown"
    return Twin(
        schedulable_class="draining" if situation.is_draining else known,
        headroom=clamped((cpu_pct + gpu_pct) / 200 * (1 - cooling / FULL_PCT) * FULL_PCT),
        cooling_stress=cooling,
        psu_stress=clamped(situation.power_watts / situation.capacity_watts * FULL_PCT),
        cpu_pct=cpu_pct,
        gpu_pct=gpu_pct,
        density=_density(hardware),
        pue=BEST_PUE + PUE_OF_FULL_STRESS * cooling / FULL_PCT,
        measured_pue=situation.measured_pue,
    )


def is_advised_to_move(twin: Twin, workload_class: str, *, reschedulable: bool) -> bool:
    """Whether the model advises to start a workload elsewhere."""
    if not reschedulable:
        return False
    is_draining = twin.schedulable_class == "draining"
    return is_draining or (twin.is_stressed and workload_class == "standard")


def node_watts(hardware: Hardware, cpu_pct: float, gpu_pct: float) -> float:
    """Return the power of a node in full use under caps in percent. 0 percent is no cap."""
    cpu_pct, gpu_pct = _cap(cpu_pct), _cap(gpu_pct)
    cpus = hardware.max_watts_per_socket * hardware.sockets * cpu_pct / FULL_PCT
    gpus = hardware.max_watts_per_gpu * hardware.gpus * gpu_pct / FULL_PCT
    return cpus + (gpus if hardware.has_gpu else 0.0)


def _cooling_stress(watts: float, celsius: float) -> float:
    warmth = max(0.0, celsius - MILD_CELSIUS) * STRESS_PER_DEGREE
    return clamped(watts / REFERENCE_NODE_WATTS * STRESS_AT_REFERENCE + warmth)


def _density(hardware: Hardware) -> float:
    cores = hardware.cores / REFERENCE_CORES * FULL_PCT
    gpus = hardware.gpus / REFERENCE_GPUS * FULL_PCT
    return clamped((cores + gpus) / 2 if hardware.has_gpu else cores)


def _cap(pct: float) -> float:
    return pct if pct > 0 else FULL_PCT
