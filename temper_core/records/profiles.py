"""Workload profiles: how the threads inside one pod are told apart and treated."""

import datetime as dt
from collections.abc import Iterator, Sequence
from enum import StrEnum

from attrs import astuple, field, frozen
from attrs.validators import (
    and_,
    deep_iterable,
    ge,
    gt,
    in_,
    le,
    matches_re,
    max_len,
    min_len,
    optional,
)

from temper_core.patterns import require_pattern
from temper_core.records.profile_keys import passes, told
from temper_core.records.versions import CONDITION_PATTERN, require_condition

SCHEMA_VERSION = 1
ID_PATTERN = r"[a-z][a-z0-9-]{0,62}"
IDENTIFIER = matches_re(ID_PATTERN)
LONGEST_COMM = 15

Bounds = int | tuple[int, int]
Shares = tuple[float, float]

_IS_PATTERN = optional(passes(require_pattern))
_IS_NAME = optional(and_(min_len(1), max_len(LONGEST_COMM)))
_NAME_SCHEMA = {"minLength": 1, "maxLength": LONGEST_COMM}


class Treatment(StrEnum):
    """What a thread group gets, strongest first."""

    EXCLUSIVE = "exclusive"
    LATENCY = "latency"
    BOOST = "boost"
    NORMAL = "normal"
    YIELD = "yield"


@frozen
class Behaviour:
    """What a thread does, for threads that no name tells apart. Each bound is [min, max]."""

    cpu_share: Shares | None = field(
        default=None, metadata=told("Share of one CPU that the thread keeps busy, 0 to 1.")
    )
    run_us: Shares | None = field(
        default=None, metadata=told("Microseconds on a CPU per run, on average.")
    )
    wakeups_per_s: Shares | None = field(
        default=None, metadata=told("How often per second the thread begins to run.")
    )


@frozen
class ThreadMatch:
    """What a thread must be. Every key that is given must hold."""

    comm_prefix: str | None = field(
        default=None,
        validator=_IS_NAME,
        metadata=told("What the thread's name begins with; 15 bytes at most.", **_NAME_SCHEMA),
    )
    comm_pattern: str | None = field(
        default=None,
        validator=_IS_PATTERN,
        metadata=told(
            "RE2 expression that is found anywhere in the thread's name.", maxLength=1000
        ),
    )
    process: str | None = field(
        default=None,
        validator=_IS_NAME,
        metadata=told("What the name of the process (its leader's) begins with.", **_NAME_SCHEMA),
    )
    title_pattern: str | None = field(
        default=None,
        validator=_IS_PATTERN,
        metadata=told(
            "RE2 expression that is found in the process's command line.", maxLength=1000
        ),
    )
    leader: bool | None = field(
        default=None, metadata=told("Whether the thread leads its process.")
    )
    behaviour: Behaviour | None = field(
        default=None, metadata=told("What the thread does, as [min, max] of what is measured.")
    )

    @property
    def is_static(self) -> bool:
        """Whether the engine can judge this by itself, without steering."""
        return {self.comm_pattern, self.title_pattern, self.behaviour} == {None}

    @property
    def is_empty(self) -> bool:
        """Whether no key is given, so that it says nothing."""
        return all(key is None for key in astuple(self, recurse=False))


@frozen
class ThreadGroup:
    """Threads of one pod that get one treatment. No ``match`` takes all the others."""

    name: str = field(
        validator=IDENTIFIER,
        metadata=told("Names the group in plans, notes and metrics.", pattern=f"^{ID_PATTERN}$"),
    )
    match: tuple[ThreadMatch, ...] = field(
        default=(),
        metadata=told(
            "Any of these tables; of one table every key. Without it: the rest.", minProperties=1
        ),
    )
    treatment: Treatment = field(default=Treatment.NORMAL, metadata=told("What the threads get."))
    cpu_fraction: float | None = field(
        default=None,
        validator=optional(and_(gt(0), le(1))),
        metadata=told(
            "exclusive only: whole cores = the pod's CPU request x this, rounded up.",
            exclusiveMinimum=0,
            maximum=1,
        ),
    )
    slice_us: int | None = field(
        default=None,
        validator=optional(and_(ge(100), le(1_000_000))),
        metadata=told("Time slice of the group's layer.", minimum=100, maximum=1_000_000),
    )
    weight: int | None = field(
        default=None,
        validator=optional(and_(ge(1), le(10_000))),
        metadata=told("Weight of the group's layer.", minimum=1, maximum=10_000),
    )

    def __attrs_post_init__(self) -> None:
        problems = []
        if any(match.is_empty for match in self.match):
            problems.append(empty_match_problem(self.name))
        if self.cpu_fraction is not None and self.treatment is not Treatment.EXCLUSIVE:
            problems.append(
                "cpu_fraction sizes exclusive groups only; "
                f"the treatment of {self.name!r} is {self.treatment.value!r}"
            )
        if problems:
            raise ValueError("; ".join(problems))


def empty_match_problem(group: str) -> str:
    """Say that a match of *group* is no match."""
    return f"a match of {group!r} names no key; leave match out to take the rest"


@frozen
class Fingerprint:
    """How a workload is recognised, and in which versions its threads are called so.

    ``annotations`` are further ids by which a pod's annotation may name the profile. ``versions``
    are conditions on the tag of images that ``images`` takes. All of them must hold.
    """

    images: tuple[str, ...] = field(
        default=(),
        metadata=told(
            "Globs on the image: name:tag, registry/name:tag, or with @sha256:… a digest."
        ),
    )
    processes: tuple[str, ...] = field(
        default=(), metadata=told("Names of main processes, where the image gives nothing away.")
    )
    annotations: tuple[str, ...] = field(
        default=(),
        validator=deep_iterable(IDENTIFIER),
        metadata=told(
            "Further ids for the annotation temper.codes/workload-profile.",
            pattern=f"^{ID_PATTERN}$",
        ),
    )
    versions: tuple[str, ...] = field(
        default=(),
        validator=deep_iterable(passes(require_condition)),
        metadata=told(
            'What the image\'s tag must say, such as [">=8.0.27", "<9"].',
            pattern=CONDITION_PATTERN,
        ),
    )


@frozen
class ShapeRange:
    """Which machines a tuning fits: an int is exact, [min, max] inclusive, absent anything."""

    cores: Bounds | None = field(default=None, metadata=told("Physical cores.", minimum=1))
    threads_per_core: Bounds | None = field(
        default=None, metadata=told("CPUs of a core: 2 with SMT.", minimum=1)
    )
    sockets: Bounds | None = field(default=None, metadata=told("Sockets.", minimum=1))
    numa_nodes: Bounds | None = field(default=None, metadata=told("NUMA nodes.", minimum=1))
    architecture: str | None = field(
        default=None, metadata=told("As uname -m says it: x86_64, aarch64.")
    )
    llcs: Bounds | None = field(default=None, metadata=told("Last-level caches.", minimum=1))


@frozen
class Traits:
    """What is true of the workload as a whole. Read by power-aware placement."""

    criticality: str | None = None
    cpu_bound: bool | None = None
    cpu_intensity: str | None = None
    cap_sensitivity: str | None = None
    gpu_bound: bool | None = None
    reschedulable: bool | None = None


@frozen
class Evidence:
    """What was measured, on what, and until when it is to be believed. All prose but dates."""

    machine: str = field(default="", metadata=told("What it was measured on."))
    kernel: str = field(default="", metadata=told("Kernel version."))
    engine: str = field(default="", metadata=told("Version of scx_layered."))
    application: str = field(default="", metadata=told("Version of the program."))
    before: str = field(default="", metadata=told("What was measured without the profile."))
    after: str = field(default="", metadata=told("What was measured with it."))
    date: str = field(default="", metadata=told("When it was measured: YYYY-MM-DD."))
    expires: str = field(
        default="",
        metadata=told("YYYY-MM-DD from which on it is to be measured anew; advice only."),
    )

    def expired_on(self, today: dt.date) -> bool:
        """Whether it is no longer to be believed on *today*. Never where no date is readable."""
        until = iso_date(self.expires)
        return until is not None and until <= today


def iso_date(text: str) -> dt.date | None:
    """Return the date that *text* is, as YYYY-MM-DD; None where it is none."""
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        return None


@frozen
class WorkloadProfile:
    """A profile document, schema version 1."""

    id: str = field(
        validator=IDENTIFIER,
        metadata=told("What annotations name the profile by.", pattern=f"^{ID_PATTERN}$"),
    )
    thread_groups: tuple[ThreadGroup, ...] = field(
        validator=min_len(1), metadata=told("The first group that matches a thread has it.")
    )
    schema_version: int = field(
        default=SCHEMA_VERSION,
        validator=in_([SCHEMA_VERSION]),
        metadata=told("1; what an absent one means, too.", enum=[SCHEMA_VERSION]),
    )
    description: str = field(default="", metadata=told("One line for people."))
    fingerprint: Fingerprint = field(
        default=Fingerprint(), metadata=told("Any of these recognises the workload.")
    )
    machine_shape: ShapeRange = field(
        default=ShapeRange(),
        metadata=told("The machines it is for: a number, [min, max], or absent for any."),
    )
    traits: Traits = field(
        default=Traits(), metadata=told("What is true of the workload as a whole.")
    )
    evidence: Evidence = field(
        default=Evidence(), metadata=told("What was measured; nothing is claimed without it.")
    )

    def __attrs_post_init__(self) -> None:
        if problems := list(group_problems(self.thread_groups)):
            raise ValueError("; ".join(problems))

    @property
    def name(self) -> str:
        """The id, under the name every contributed record has."""
        return self.id


def group_problems(groups: Sequence[ThreadGroup]) -> Iterator[str]:
    """Say what is wrong between the groups of a profile."""
    names = [group.name for group in groups]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield doubled_name_problem(name)
    for group in groups[:-1]:
        if not group.match:
            yield early_rest_problem(group.name)


def doubled_name_problem(group: str) -> str:
    """Say that several groups are named *group*."""
    return f"two thread groups are named {group!r}; names must differ"


def early_rest_problem(group: str) -> str:
    """Say that *group*, which takes the rest, leaves nothing to those behind it."""
    return f"group {group!r} has no match, so it takes every thread and must be last"


@frozen
class LoadedProfile:
    """A profile and where it came from: a file's path, or the plugin that ships it.

    ``lineage`` names the profiles that it extends, nearest first, each with its source.
    ``expired`` is the date on which its evidence did, empty where it has not.
    """

    profile: WorkloadProfile
    source: str
    is_file: bool = False
    lineage: tuple[str, ...] = ()
    expired: str = ""

    @property
    def advice(self) -> str:
        """What to know before believing it. The profile is applied in any case."""
        return f"its evidence expired on {self.expired}: measure anew" if self.expired else ""


@frozen
class ProfileFailure:
    """A profile that could not be loaded. ``problems`` are those of ``reason``, one by one."""

    source: str
    profile: str
    reason: str
    problems: tuple[str, ...] = ()
