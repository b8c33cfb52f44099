"""Pods of the node, with the fields that placement needs."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen
from attrs.validators import (
    and_,
    deep_iterable,
    deep_mapping,
    ge,
    instance_of,
    optional,
)

from temper_core.records.read_only import read_only
from temper_core.records.tiers import Tier

IS_TEXT = instance_of(str)
ARE_TEXTS = deep_iterable(IS_TEXT, instance_of(tuple))
MAPS_TEXT = deep_mapping(IS_TEXT, IS_TEXT)
IS_COUNT = and_(instance_of(int), ge(0))
PROFILE_ANNOTATIONS = ("temper.codes/workload-profile", "infera.io/workload-profile")
LONGEST_WANTED = 64
"""Characters of a profile's id that an annotation names: one more than an id has. The API server
takes 256 KiB, and reasons, notes and violations quote the id."""


class QosClass(StrEnum):
    """Kubernetes' own class of a pod, derived from its requests and limits."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Origin(StrEnum):
    """The kind of object that a pod stands for on this host."""

    KUBERNETES = "kubernetes"
    CONTAINER = "container"
    UNIT = "unit"
    WORKLOAD = "workload"


@frozen
class Container:
    """One container that counts towards its pod's size. CPU is in millicores, memory in bytes.

    ``is_sidecar`` is whether it is among the pod's init containers, and runs on.
    The memory request and limit are None if they are unset or unknown. No tier depends on them.
    """

    name: str = field(validator=IS_TEXT)
    image: str = field(default="", validator=IS_TEXT)
    cpu_request_millis: int = field(default=0, validator=IS_COUNT)
    cpu_limit_millis: int | None = field(default=None, validator=optional(IS_COUNT))
    runtime_id: str = field(default="", validator=IS_TEXT)
    processes: tuple[str, ...] = field(default=(), validator=ARE_TEXTS)
    memory_request_bytes: int | None = field(default=None, validator=optional(IS_COUNT))
    memory_limit_bytes: int | None = field(default=None, validator=optional(IS_COUNT))
    is_sidecar: bool = field(default=False, validator=instance_of(bool))


@frozen
class Pod:
    """A pod of this node, or its substitute on a host without Kubernetes.

    ``cpu_request_millis`` and ``cpu_limit_millis`` are the pod's own, after Kubernetes' rules on
    init containers and overhead. No limit is ``None``. ``cgroups`` are cgroup v2 paths in the
    engine's form, without a leading slash and with a trailing one. They are empty if unknown.
    ``tier`` is set if a rule decides it, and not a priority.
    """

    uid: str = field(validator=IS_TEXT)
    namespace: str = field(validator=IS_TEXT)
    name: str = field(validator=IS_TEXT)
    priority: int | None = field(default=None, validator=optional(instance_of(int)))
    priority_class: str = field(default="", validator=IS_TEXT)
    qos_class: QosClass = field(default=QosClass.BEST_EFFORT, validator=instance_of(QosClass))
    containers: tuple[Container, ...] = field(
        default=(), validator=deep_iterable(instance_of(Container), instance_of(tuple))
    )
    cpu_request_millis: int = field(default=0, validator=IS_COUNT)
    cpu_limit_millis: int | None = field(default=None, validator=optional(IS_COUNT))
    annotations: Mapping[str, str] = field(factory=dict, converter=read_only, validator=MAPS_TEXT)
    labels: Mapping[str, str] = field(factory=dict, converter=read_only, validator=MAPS_TEXT)
    owner: str = field(default="", validator=IS_TEXT)
    cgroups: tuple[str, ...] = field(default=(), validator=ARE_TEXTS)
    origin: Origin = Origin.KUBERNETES
    tier: Tier | None = field(default=None, validator=optional(instance_of(Tier)))
    tier_rule: str = field(default="", validator=IS_TEXT)

    @property
    def key(self) -> str:
        """The name for people: ``namespace/name``."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def wanted_profile(self) -> tuple[str, str] | None:
        """The profile an annotation names, as (annotation, profile id). A longer id is cut."""
        for annotation in PROFILE_ANNOTATIONS:
            if annotation in self.annotations:
                return annotation, self.annotations[annotation][:LONGEST_WANTED]
        return None
