"""Properties of a workload as a whole, with the values of the WorkloadProfile resource.

Power-aware placement reads them as hints. They are joulie.io/v1alpha1 ``status.criticality.class``,
``status.cpu.{bound,intensity,capSensitivity}``, ``status.gpu.bound`` and
``status.migratability.reschedulable``.
"""

from enum import StrEnum

from attrs import field, frozen
from attrs.validators import instance_of, optional

from temper_core.records.key_metadata import key_help


class Criticality(StrEnum):
    """Whether the workload may run on power-saving nodes."""

    PERFORMANCE = "performance"
    STANDARD = "standard"


class Level(StrEnum):
    """A degree of intensity or sensitivity."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class CpuBound(StrEnum):
    """The limit of the work on CPUs."""

    COMPUTE = "compute"
    MEMORY = "memory"
    IO = "io"
    MIXED = "mixed"


class GpuBound(StrEnum):
    """The limit of the work on GPUs. NONE is a workload without a GPU."""

    COMPUTE = "compute"
    MEMORY = "memory"
    MIXED = "mixed"
    NONE = "none"


@frozen
class Traits:
    """Properties of the workload as a whole. An absent one is not known."""

    criticality: Criticality | None = field(
        default=None,
        validator=optional(instance_of(Criticality)),
        metadata=key_help("performance is kept off power-saving nodes, standard runs on any node."),
    )
    cpu_bound: CpuBound | None = field(
        default=None,
        validator=optional(instance_of(CpuBound)),
        metadata=key_help("What limits the work on CPUs; mixed if nothing dominates."),
    )
    cpu_intensity: Level | None = field(
        default=None,
        validator=optional(instance_of(Level)),
        metadata=key_help("How hard the workload drives the CPUs that it requests."),
    )
    cap_sensitivity: Level | None = field(
        default=None,
        validator=optional(instance_of(Level)),
        metadata=key_help("How much a power cap of the CPUs slows the workload."),
    )
    gpu_bound: GpuBound | None = field(
        default=None,
        validator=optional(instance_of(GpuBound)),
        metadata=key_help("What limits the work on GPUs; none without a GPU."),
    )
    reschedulable: bool | None = field(
        default=None,
        validator=optional(instance_of(bool)),
        metadata=key_help("Whether the pods may be restarted on another node."),
    )
