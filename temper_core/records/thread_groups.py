"""Thread groups: the threads of a pod that a match selects, and their treatment."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

from attrs import astuple, field, frozen
from attrs.validators import and_, ge, gt, le, matches_re, optional

from temper_core.patterns import cost_problem, require_pattern
from temper_core.records.key_metadata import key_help, passes

ID_PATTERN = r"[a-z][a-z0-9-]{0,62}"
IDENTIFIER = matches_re(ID_PATTERN)
LONGEST_COMM = 15
MOST_MATCHES = 256
"""Of a profile. Each is compared with those before it, whenever the profile is read."""
MOST_GROUPS = MOST_MATCHES + 1
"""Of a profile: each but the last has a match."""
LONGEST_FILE_NAME = 255
"""Bytes of the name of a file (NAME_MAX)."""
LARGEST_AGE_S = 86_400
JDK_HEAD, JDK_TAIL = 7, 6
"""Bytes of a long name that JDK 26 and later keep, ``..`` between (os::set_native_thread_name)."""

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


def group_problems(groups: Sequence[ThreadGroup]) -> Iterator[str]:
    """Yield the problems between the groups of a profile."""
    for name, times in Counter(group.name for group in groups).items():
        if times > 1:
            yield doubled_name_problem(name)
    for group in groups[:-1]:
        if not group.match:
            yield early_rest_problem(group.name)
    if problem := match_problem(groups):
        yield problem


def match_problem(groups: Sequence[ThreadGroup]) -> str:
    """Return why *groups* have too many matches, or patterns that cost too much. Empty if not."""
    matches = [match for group in groups for match in group.match]
    if problem := match_count_problem(len(matches)):
        return problem
    patterns = [(match.comm_pattern, match.title_pattern) for match in matches]
    return cost_problem([pattern for pair in patterns for pattern in pair if pattern is not None])


def match_count_problem(count: int) -> str:
    """Return that *count* matches are too many for the groups of a profile. Empty if not."""
    if count > MOST_MATCHES:
        return f"have {count} matches, and a profile may have {MOST_MATCHES}"
    return ""


def doubled_name_problem(group: str) -> str:
    """Return the problem of several groups named *group*."""
    return f"two thread groups are named {group!r}; names must differ"


def early_rest_problem(group: str) -> str:
    """Return the problem of a *group* that takes the rest and is not last."""
    return f"group {group!r} has no match, so it takes every thread and must be last"
