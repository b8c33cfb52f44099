"""Pods: what runs on the node, as far as placement cares."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen
from attrs.validators import ge, optional

from temper_core.records.tiers import Tier

PROFILE_ANNOTATIONS = ("temper.codes/workload-profile", "infera.io/workload-profile")


class QosClass(StrEnum):
    """Kubernetes' own class of a pod, derived from its requests and limits."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Origin(StrEnum):
    """What kind of thing a pod is on this host."""

    KUBERNETES = "kubernetes"
    CONTAINER = "container"
    UNIT = "unit"
    WORKLOAD = "workload"


@frozen
class Container:
    """One container that counts towards its pod's size; CPU in millicores."""

    name: str
    image: str = ""
    cpu_request_millis: int = field(default=0, validator=ge(0))
    cpu_limit_millis: int | None = field(default=None, validator=optional(ge(0)))
    runtime_id: str = ""
    processes: tuple[str, ...] = ()


@frozen
class Pod:
    """A pod of this node, or what stands for one where there is no Kubernetes.

    ``cpu_request_millis`` and ``cpu_limit_millis`` are the pod's own, after Kubernetes' rules on
    init containers and overhead; no limit is ``None``. ``cgroups`` are cgroup v2 paths without a
    leading slash and with a trailing one, as the engine sees them; empty when unknown.
    ``tier`` is set where a rule, not a priority, decides.
    """

    uid: str
    namespace: str
    name: str
    priority: int | None = None
    priority_class: str = ""
    qos_class: QosClass = QosClass.BEST_EFFORT
    containers: tuple[Container, ...] = ()
    cpu_request_millis: int = field(default=0, validator=ge(0))
    cpu_limit_millis: int | None = field(default=None, validator=optional(ge(0)))
    annotations: Mapping[str, str] = field(factory=dict)
    labels: Mapping[str, str] = field(factory=dict)
    owner: str = ""
    cgroups: tuple[str, ...] = ()
    origin: Origin = Origin.KUBERNETES
    tier: Tier | None = None
    tier_rule: str = ""

    @property
    def key(self) -> str:
        """The name people say: ``namespace/name``."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def wanted_profile(self) -> tuple[str, str] | None:
        """The profile an annotation names, as (annotation, profile id)."""
        for annotation in PROFILE_ANNOTATIONS:
            if annotation in self.annotations:
                return annotation, self.annotations[annotation]
        return None
