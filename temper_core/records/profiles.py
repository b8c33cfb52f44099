"""Workload profiles: documents, and profiles that were loaded from them."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen
from attrs.validators import and_, deep_iterable, in_, instance_of, min_len

from temper_core.bounded_text import first_of, shortened
from temper_core.records.key_metadata import key_help, passes
from temper_core.records.profile_evidence import Evidence
from temper_core.records.thread_groups import ID_PATTERN, IDENTIFIER, ThreadGroup, group_problems
from temper_core.records.traits import Traits
from temper_core.records.versions import CONDITION_PATTERN, require_condition

SCHEMA_VERSION = 1

MOST_SIGNS = 64
"""Entries of a list in a fingerprint."""
LONGEST_SIGN = 512
"""Characters of an image that are read."""
MOST_WILDCARDS = 8
LONGEST_EXPRESSION = 128
"""Characters of a glob that needs a regular expression."""
LONGEST_ID = 63
"""Characters of the id of a refused profile that are kept. No id has more."""
MOST_PROBLEMS = 100
"""Problems of a refused profile that are kept."""
LONGEST_REASON = 5_000
"""Characters of why a profile is refused. Its problems have 4,200 with what separates them."""

Bounds = int | tuple[int, int]


def entries_problem(count: int, most: int) -> str:
    """Return that a list has too many entries. Empty if it may have as many."""
    return f"has {count} entries, and may have {most}" if count > most else ""


def _require_few(_: object, __: object, entries: Sequence[str]) -> None:
    if problem := entries_problem(len(entries), MOST_SIGNS):
        raise ValueError(problem)


def _require_short(_: object, __: object, entries: Sequence[str]) -> None:
    longest = max(map(len, entries), default=0)
    if longest > LONGEST_SIGN:
        raise ValueError(f"an entry has {longest} characters, and may have {LONGEST_SIGN}")


def needs_expression(glob: str) -> bool:
    """Whether *glob* has wildcards for single characters."""
    return "?" in glob or "[" in glob


def _require_cheap(_: object, __: object, globs: Sequence[str]) -> None:
    for glob in globs:
        wildcards = sum(map(glob.count, "*?["))
        if wildcards > MOST_WILDCARDS:
            raise ValueError(f"a glob has {wildcards} wildcards, and may have {MOST_WILDCARDS}")
        if needs_expression(glob) and len(glob) > LONGEST_EXPRESSION:
            raise ValueError(
                f"a glob with ? or [ has {len(glob)} characters, and may have {LONGEST_EXPRESSION}"
            )


@frozen
class Fingerprint:
    """The signs of a workload, and the versions in which its threads have these names.

    ``annotations`` are further ids by which a pod's annotation may name the profile. ``versions``
    are conditions on the tag of images that ``images`` matches. All of them must hold.
    """

    images: tuple[str, ...] = field(
        default=(),
        validator=and_(_require_few, _require_short, _require_cheap),
        metadata=key_help(
            "Globs on the image: name:tag, registry/name:tag, or with @sha256:… a digest."
        ),
    )
    processes: tuple[str, ...] = field(
        default=(),
        validator=and_(_require_few, _require_short),
        metadata=key_help("Names of main processes, for images that do not show the program."),
    )
    annotations: tuple[str, ...] = field(
        default=(),
        validator=and_(_require_few, deep_iterable(IDENTIFIER)),
        metadata=key_help(
            "Further ids for the annotation temper.codes/workload-profile.",
            pattern=f"^{ID_PATTERN}$",
        ),
    )
    versions: tuple[str, ...] = field(
        default=(),
        validator=and_(_require_few, deep_iterable(passes(require_condition))),
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


def _bounded_id(claimed: str) -> str:
    return shortened(claimed, LONGEST_ID)


def _bounded_reason(reason: str) -> str:
    return shortened(reason, LONGEST_REASON)


def bounded_problems(problems: Sequence[str]) -> tuple[str, ...]:
    """Return the first of *problems*, shortened, and how many more there are."""
    return first_of(problems, MOST_PROBLEMS)


@frozen
class ProfileFailure:
    """A profile that could not be loaded. ``problems`` are the parts of ``reason``.

    All texts but the source are shortened: they may repeat what a document of any size says.
    """

    source: str
    profile: str = field(converter=_bounded_id)
    reason: str = field(converter=_bounded_reason)
    problems: tuple[str, ...] = field(default=(), converter=bounded_problems)

    @classmethod
    def of(
        cls, source: str, profile: str, problems: Sequence[str], end: str = ""
    ) -> "ProfileFailure":
        """Return a failure whose reason is all of *problems*, and *end*."""
        told = bounded_problems(problems)
        return cls(source, profile, "; ".join(told) + end, told)
