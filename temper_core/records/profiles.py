"""Workload profiles: how the threads inside one pod are told apart and treated."""

from enum import StrEnum

from attrs import Attribute, astuple, field, frozen
from attrs.validators import and_, ge, gt, in_, le, matches_re, max_len, min_len, optional

from temper_core.records.patterns import require_pattern

SCHEMA_VERSION = 1
IDENTIFIER = matches_re(r"[a-z][a-z0-9-]{0,62}")
LONGEST_COMM = 15

Bounds = int | tuple[int, int]


def _is_pattern(_: object, attribute: "Attribute[str]", value: str) -> None:
    try:
        require_pattern(value)
    except ValueError as error:
        raise ValueError(f"{attribute.name!r} {error}") from error


class Treatment(StrEnum):
    """What a thread group gets, strongest first."""

    EXCLUSIVE = "exclusive"
    LATENCY = "latency"
    BOOST = "boost"
    NORMAL = "normal"
    YIELD = "yield"


@frozen
class Behaviour:
    """What a thread does, for threads that no name tells apart; each bound is [min, max]."""

    cpu_share: tuple[float, float] | None = None
    run_us: tuple[float, float] | None = None
    wakeups_per_s: tuple[float, float] | None = None


@frozen
class ThreadMatch:
    """What a thread must be; every key that is given must hold."""

    comm_prefix: str | None = field(
        default=None, validator=optional(and_(min_len(1), max_len(LONGEST_COMM)))
    )
    comm_pattern: str | None = field(default=None, validator=optional(_is_pattern))
    process: str | None = field(
        default=None, validator=optional(and_(min_len(1), max_len(LONGEST_COMM)))
    )
    title_pattern: str | None = field(default=None, validator=optional(_is_pattern))
    leader: bool | None = None
    behaviour: Behaviour | None = None

    @property
    def is_static(self) -> bool:
        """Whether the engine can judge this by itself, without steering."""
        needs_steering = (self.comm_pattern, self.title_pattern, self.behaviour)
        return all(key is None for key in needs_steering)

    @property
    def is_empty(self) -> bool:
        """Whether no key is given, so that it says nothing."""
        return all(key is None for key in astuple(self, recurse=False))


@frozen
class ThreadGroup:
    """Threads of one pod that get one treatment; no ``match`` takes all the others."""

    name: str = field(validator=IDENTIFIER)
    match: tuple[ThreadMatch, ...] = ()
    treatment: Treatment = Treatment.NORMAL
    cpu_fraction: float | None = field(default=None, validator=optional(and_(gt(0), le(1))))
    slice_us: int | None = field(default=None, validator=optional(and_(ge(100), le(1_000_000))))
    weight: int | None = field(default=None, validator=optional(and_(ge(1), le(10_000))))

    def __attrs_post_init__(self) -> None:
        if any(match.is_empty for match in self.match):
            raise ValueError(
                f"a match of {self.name!r} names no key; leave match out to take the rest"
            )
        if self.cpu_fraction is not None and self.treatment is not Treatment.EXCLUSIVE:
            raise ValueError(
                "cpu_fraction sizes exclusive groups only; "
                f"the treatment of {self.name!r} is {self.treatment.value!r}"
            )


@frozen
class Fingerprint:
    """How a workload is recognised: globs on the image, or main process names."""

    images: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()


@frozen
class ShapeRange:
    """Which machines a tuning fits: an int is exact, [min, max] inclusive, absent anything."""

    cores: Bounds | None = None
    threads_per_core: Bounds | None = None
    sockets: Bounds | None = None
    numa_nodes: Bounds | None = None
    architecture: str | None = None


@frozen
class Traits:
    """What is true of the workload as a whole; read by power-aware placement."""

    criticality: str | None = None
    cpu_bound: bool | None = None
    cpu_intensity: str | None = None
    cap_sensitivity: str | None = None
    gpu_bound: bool | None = None
    reschedulable: bool | None = None


@frozen
class Evidence:
    """What was measured, on what, and until when it is to be believed; all prose."""

    machine: str = ""
    kernel: str = ""
    engine: str = ""
    application: str = ""
    before: str = ""
    after: str = ""
    date: str = ""
    expires: str = ""


@frozen
class WorkloadProfile:
    """A profile document, schema version 1."""

    id: str = field(validator=IDENTIFIER)
    thread_groups: tuple[ThreadGroup, ...] = field(validator=min_len(1))
    schema_version: int = field(default=SCHEMA_VERSION, validator=in_([SCHEMA_VERSION]))
    description: str = ""
    fingerprint: Fingerprint = Fingerprint()
    machine_shape: ShapeRange = ShapeRange()
    traits: Traits = Traits()
    evidence: Evidence = Evidence()

    def __attrs_post_init__(self) -> None:
        names = [group.name for group in self.thread_groups]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two thread groups are named {name!r}; names must differ")
        for group in self.thread_groups[:-1]:
            if not group.match:
                raise ValueError(
                    f"group {group.name!r} has no match, so it takes every thread and must be last"
                )

    @property
    def name(self) -> str:
        """The id, under the name every contributed record has."""
        return self.id


@frozen
class LoadedProfile:
    """A profile and where it came from: a file's path, or the plugin that ships it."""

    profile: WorkloadProfile
    source: str
    is_file: bool = False


@frozen
class ProfileFailure:
    """A profile that could not be loaded; the node goes on without it."""

    source: str
    profile: str
    reason: str
