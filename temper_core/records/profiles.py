"""Workload profiles: matching and treatment of the threads inside one pod."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import astuple, field, frozen
from attrs.validators import (
    and_,
    deep_iterable,
    ge,
    gt,
    in_,
    instance_of,
    le,
    matches_re,
    min_len,
    optional,
)

from temper_core.patterns import require_pattern
from temper_core.records.profile_evidence import Evidence
from temper_core.records.profile_keys import key_help, passes
from temper_core.records.traits import Traits
from temper_core.records.versions import CONDITION_PATTERN, require_condition

SCHEMA_VERSION = 1
ID_PATTERN = r"[a-z][a-z0-9-]{0,62}"
IDENTIFIER = matches_re(ID_PATTERN)
LONGEST_COMM = 15
LONGEST_FILE_NAME = 255
"""Bytes of the name of a file (NAME_MAX)."""
LARGEST_AGE_S = 86_400
JDK_HEAD, JDK_TAIL = 7, 6
"""Bytes of a long name that JDK 26 and later keep, ``..`` between (os::set_native_thread_name)."""

Bounds = int | tuple[int, int]
Shares = tuple[float, float]


def cuts_of(name: str) -> str:
    """Return what the kernel and the JDK make of a *name* of more than 15 bytes, as text."""
    data = name.encode(errors="surrogateescape")
    kernel = data[:LONGEST_COMM].decode(errors="ignore")
    head, tail = data[:JDK_HEAD].decode(errors="ignore"), data[-JDK_TAIL:].decode(errors="ignore")
    return f"the kernel keeps {kernel!r}, the JDK writes {head + '..' + tail!r}"


def _require_name(name: str) -> None:
    size = len(name.encode(errors="surrogateescape"))
    if not name:
        raise ValueError("must not be empty; leave the key out to take any name")
    if size > LONGEST_COMM:
        raise ValueError(f"must be at most {LONGEST_COMM} bytes, not {size}: {cuts_of(name)}")


def _require_file_name(name: str) -> None:
    size = len(name.encode(errors="surrogateescape"))
    if not 1 <= size <= LONGEST_FILE_NAME:
        raise ValueError(f"must be 1 to {LONGEST_FILE_NAME} bytes, not {size}")
    if "/" in name:
        last = name.rstrip("/").rpartition("/")[2]
        raise ValueError(f"must be the name of a file without its path, such as {last!r}")


_IS_PATTERN = optional(passes(require_pattern))
_IS_NAME = optional(passes(_require_name))
_NAME_SCHEMA = {"minLength": 1, "maxLength": LONGEST_COMM}


class Treatment(StrEnum):
    """The treatment of a thread group, strongest first."""

    EXCLUSIVE = "exclusive"
    LATENCY = "latency"
    BOOST = "boost"
    NORMAL = "normal"
    YIELD = "yield"


@frozen
class Behaviour:
    """Bounds on a thread's behaviour, for threads with equal names. Each is [min, max]."""

    cpu_share: Shares | None = field(
        default=None, metadata=key_help("Share of one CPU that the thread keeps busy, 0 to 1.")
    )
    run_us: Shares | None = field(
        default=None, metadata=key_help("Microseconds on a CPU per run, on average.")
    )
    wakeups_per_s: Shares | None = field(
        default=None, metadata=key_help("How often per second the thread begins to run.")
    )


BEYOND_NAMES = ("title_pattern", "behaviour", "exe", "parent", "is_child", "older_than_s")
"""Keys of a match on facts that neither the engine nor the kernel side of steering has."""


@frozen
class ThreadMatch:
    """Conditions on a thread. Every given key must hold."""

    comm_prefix: str | None = field(
        default=None,
        validator=_IS_NAME,
        metadata=key_help("Prefix of the thread's name, at most 15 bytes.", **_NAME_SCHEMA),
    )
    comm_pattern: str | None = field(
        default=None,
        validator=_IS_PATTERN,
        metadata=key_help(
            "RE2 expression that is found anywhere in the thread's name.", maxLength=1000
        ),
    )
    process: str | None = field(
        default=None,
        validator=_IS_NAME,
        metadata=key_help("Prefix of the process name (its leader's).", **_NAME_SCHEMA),
    )
    title_pattern: str | None = field(
        default=None,
        validator=_IS_PATTERN,
        metadata=key_help(
            "RE2 expression that is found in the process's command line.", maxLength=1000
        ),
    )
    leader: bool | None = field(
        default=None, metadata=key_help("Whether the thread leads its process.")
    )
    behaviour: Behaviour | None = field(
        default=None, metadata=key_help("Measured behaviour of the thread, as [min, max].")
    )
    exe: str | None = field(
        default=None,
        validator=optional(passes(_require_file_name)),
        metadata=key_help(
            "Prefix of the file name of the process's executable, without its path.",
            minLength=1,
            maxLength=LONGEST_FILE_NAME,
            pattern="^[^/]+$",
        ),
    )
    parent: str | None = field(
        default=None,
        validator=_IS_NAME,
        metadata=key_help("Prefix of the name of the process's parent process.", **_NAME_SCHEMA),
    )
    is_child: bool | None = field(
        default=None,
        metadata=key_help("Whether the process was forked and has executed no program since."),
    )
    older_than_s: float | None = field(
        default=None,
        validator=optional(and_(gt(0), le(LARGEST_AGE_S))),
        metadata=key_help(
            "Seconds since the thread started, at least.",
            exclusiveMinimum=0,
            maximum=LARGEST_AGE_S,
        ),
    )

    @property
    def is_static(self) -> bool:
        """Whether the engine can evaluate this by itself, without steering."""
        return self.comm_pattern is None and self.is_by_name

    @property
    def is_by_name(self) -> bool:
        """Whether names and leadership decide, so that no other fact of the thread is needed."""
        # Spelt out, because it is asked for every thread that is matched.
        return (
            self.title_pattern is None
            and self.behaviour is None
            and self.exe is None
            and self.parent is None
            and self.is_child is None
            and self.older_than_s is None
        )

    @property
    def steered_keys(self) -> tuple[str, ...]:
        """The given keys that scx_layered has no matcher for (1.0.5 to 1.1.4)."""
        return tuple(
            key for key in ("comm_pattern", *BEYOND_NAMES) if getattr(self, key) is not None
        )

    @property
    def is_empty(self) -> bool:
        """Whether no key is given."""
        return all(key is None for key in astuple(self, recurse=False))


@frozen
class ThreadGroup:
    """Threads of one pod that get one treatment. A group without ``match`` takes the rest."""

    name: str = field(
        validator=IDENTIFIER,
        metadata=key_help(
            "Names the group in plans, notes and metrics.", pattern=f"^{ID_PATTERN}$"
        ),
    )
    match: tuple[ThreadMatch, ...] = field(
        default=(),
        metadata=key_help(
            "Any of these tables must match, with all its keys. Without match: the rest.",
            minProperties=1,
        ),
    )
    treatment: Treatment = field(
        default=Treatment.NORMAL, metadata=key_help("Treatment of the threads.")
    )
    cpu_fraction: float | None = field(
        default=None,
        validator=optional(and_(gt(0), le(1))),
        metadata=key_help(
            "exclusive only: whole cores = the pod's CPU request x this, rounded up.",
            exclusiveMinimum=0,
            maximum=1,
        ),
    )
    slice_us: int | None = field(
        default=None,
        validator=optional(and_(ge(100), le(1_000_000))),
        metadata=key_help("Time slice of the group's layer.", minimum=100, maximum=1_000_000),
    )
    weight: int | None = field(
        default=None,
        validator=optional(and_(ge(1), le(10_000))),
        metadata=key_help("Weight of the group's layer.", minimum=1, maximum=10_000),
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
    """Return the problem of an empty match of *group*."""
    return f"a match of {group!r} names no key; leave match out to take the rest"


@frozen
class Fingerprint:
    """The signs of a workload, and the versions in which its threads have these names.

    ``annotations`` are further ids by which a pod's annotation may name the profile. ``versions``
    are conditions on the tag of images that ``images`` matches. All of them must hold.
    """

    images: tuple[str, ...] = field(
        default=(),
        metadata=key_help(
            "Globs on the image: name:tag, registry/name:tag, or with @sha256:… a digest."
        ),
    )
    processes: tuple[str, ...] = field(
        default=(),
        metadata=key_help("Names of main processes, for images that do not show the program."),
    )
    annotations: tuple[str, ...] = field(
        default=(),
        validator=deep_iterable(IDENTIFIER),
        metadata=key_help(
            "Further ids for the annotation temper.codes/workload-profile.",
            pattern=f"^{ID_PATTERN}$",
        ),
    )
    versions: tuple[str, ...] = field(
        default=(),
        validator=deep_iterable(passes(require_condition)),
        metadata=key_help(
            'Conditions on the version in the image\'s tag, such as [">=8.0.27", "<9"].',
            pattern=CONDITION_PATTERN,
        ),
    )


@frozen
class ShapeRange:
    """The machines that a tuning fits: an int is exact, [min, max] inclusive, absent is any."""

    cores: Bounds | None = field(default=None, metadata=key_help("Physical cores.", minimum=1))
    threads_per_core: Bounds | None = field(
        default=None, metadata=key_help("CPUs of a core: 2 with SMT.", minimum=1)
    )
    sockets: Bounds | None = field(default=None, metadata=key_help("Sockets.", minimum=1))
    numa_nodes: Bounds | None = field(default=None, metadata=key_help("NUMA nodes.", minimum=1))
    architecture: str | None = field(
        default=None, metadata=key_help("Architecture as of uname -m: x86_64, aarch64.")
    )
    llcs: Bounds | None = field(default=None, metadata=key_help("Last-level caches.", minimum=1))


@frozen
class WorkloadProfile:
    """A profile document, schema version 1."""

    id: str = field(
        validator=IDENTIFIER,
        metadata=key_help("Id by which annotations name the profile.", pattern=f"^{ID_PATTERN}$"),
    )
    thread_groups: tuple[ThreadGroup, ...] = field(
        validator=min_len(1), metadata=key_help("The first group that matches a thread takes it.")
    )
    schema_version: int = field(
        default=SCHEMA_VERSION,
        validator=in_([SCHEMA_VERSION]),
        metadata=key_help("Always 1, also if absent.", enum=[SCHEMA_VERSION]),
    )
    description: str = field(default="", metadata=key_help("One line for people."))
    fingerprint: Fingerprint = field(
        default=Fingerprint(), metadata=key_help("Any of these recognises the workload.")
    )
    machine_shape: ShapeRange = field(
        default=ShapeRange(),
        metadata=key_help("The machines it is for: a number, [min, max], or absent for any."),
    )
    traits: Traits = field(
        default=Traits(), metadata=key_help("Properties of the workload as a whole.")
    )
    evidence: Evidence = field(
        default=Evidence(), metadata=key_help("Measurements that support the profile.")
    )
    enabled: bool = field(
        default=True,
        validator=instance_of(bool),
        metadata=key_help(
            "Whether detectors, images and processes choose it; an annotation does in any case."
        ),
    )

    def __attrs_post_init__(self) -> None:
        if problems := list(group_problems(self.thread_groups)):
            raise ValueError("; ".join(problems))

    @property
    def name(self) -> str:
        """The id, by the attribute that every contributed record has."""
        return self.id


@frozen
class DerivedProfile(WorkloadProfile):
    """A profile that ``extends`` another, and needs its parent.

    ``given`` is its table as written, and holds its thread groups. The node completes it before
    a pod can get it.
    """

    thread_groups: tuple[ThreadGroup, ...] = field(default=(), init=False)
    extends: str = field(default="", kw_only=True)
    given: Mapping[str, Any] = field(factory=dict, kw_only=True, repr=False, hash=False)


def group_problems(groups: Sequence[ThreadGroup]) -> Iterator[str]:
    """Yield the problems between the groups of a profile."""
    names = [group.name for group in groups]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield doubled_name_problem(name)
    for group in groups[:-1]:
        if not group.match:
            yield early_rest_problem(group.name)


def doubled_name_problem(group: str) -> str:
    """Return the problem of several groups named *group*."""
    return f"two thread groups are named {group!r}; names must differ"


def early_rest_problem(group: str) -> str:
    """Return the problem of a *group* that takes the rest and is not last."""
    return f"group {group!r} has no match, so it takes every thread and must be last"


@frozen
class LoadedProfile:
    """A profile and its source: a file's path, or the plugin that ships it.

    ``lineage`` names the profiles that it extends, nearest first, each with its source.
    ``expired`` is the date on which its evidence expired, empty if it has not. ``disabled`` is the
    reason why only an annotation chooses it, empty if it is enabled.
    """

    profile: WorkloadProfile
    source: str
    is_file: bool = False
    lineage: tuple[str, ...] = ()
    expired: str = ""
    disabled: str = ""

    @property
    def advice(self) -> str:
        """A warning about expired evidence. The profile is applied in any case."""
        return f"its evidence expired on {self.expired}: measure again" if self.expired else ""


@frozen
class ProfileFailure:
    """A profile that could not be loaded. ``problems`` are the parts of ``reason``."""

    source: str
    profile: str
    reason: str
    problems: tuple[str, ...] = ()
