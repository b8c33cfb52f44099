"""The identity of a thread for the engine and for profiles, and tests of conditions on it."""

import re
from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

from temper_core.patterns import finds
from temper_core.records.profiles import Behaviour, ThreadMatch

MatchValue = str | bool | int
LONGEST_TITLE = 1_024
"""Characters of a title that patterns see."""


@frozen
class ThreadBehaviour:
    """The measured behaviour of a thread. ``None`` if it was not measured.

    ``cpu_share`` is in CPUs (1.0 is one CPU busy throughout), ``run_us`` in microseconds on a CPU
    per run. ``wakeups_per_s`` counts how often it began to run.
    """

    cpu_share: float | None = None
    run_us: float | None = None
    wakeups_per_s: float | None = None


@frozen
class ThreadIdentity:
    """The input of matchers. ``cgroup`` is the engine's form of the path: ``a/b/c/``.

    ``title`` is the process's command line, with blanks between the words. Only profiles use
    ``title`` and ``behaviour``. The engine has neither.
    """

    cgroup: str
    comm: str
    process: str
    uid: int = 0
    is_kthread: bool = False
    is_leader: bool = False
    title: str = ""
    behaviour: ThreadBehaviour | None = None


@frozen
class Matcher:
    """One condition in the engine's own terms: ``Matcher("CommPrefix", "ib_")``."""

    kind: str
    value: MatchValue


def holds(matcher: Matcher, thread: ThreadIdentity) -> bool:
    """Evaluate one matcher as the engine does. A kind that Temper never writes does not hold.

    The semantics are those of scx_layered 1.1.4: cgroup paths have no leading and one trailing
    slash, regular expressions are unanchored and see the absolute directory without trailing
    slash, ``IsKthread`` ignores its argument.
    """
    test = _TESTS.get(matcher.kind)
    return test is not None and test(matcher.value, thread)


def matches(match: ThreadMatch, thread: ThreadIdentity) -> bool:
    """Evaluate a profile's match: every given key must hold.

    Patterns are searched in the whole name, or in the beginning of the title, in linear time. A
    behaviour that was not measured does not hold.
    """
    if not thread.comm.startswith(match.comm_prefix or ""):
        return False
    if not thread.process.startswith(match.process or ""):
        return False
    if match.leader not in (None, thread.is_leader):
        return False
    return match.is_static or _matches_by_sight(match, thread)


def _matches_by_sight(match: ThreadMatch, thread: ThreadIdentity) -> bool:
    if match.comm_pattern is not None and not finds(match.comm_pattern, thread.comm):
        return False
    title = thread.title[:LONGEST_TITLE]
    if match.title_pattern is not None and not finds(match.title_pattern, title):
        return False
    return match.behaviour is None or _behaves(match.behaviour, thread.behaviour)


def _behaves(wanted: Behaviour, seen: ThreadBehaviour | None) -> bool:
    seen = seen or ThreadBehaviour()
    pairs = (
        (wanted.cpu_share, seen.cpu_share),
        (wanted.run_us, seen.run_us),
        (wanted.wakeups_per_s, seen.wakeups_per_s),
    )
    return all(
        bounds is None or (value is not None and bounds[0] <= value <= bounds[1])
        for bounds, value in pairs
    )


@lru_cache(maxsize=256)
def _engine_regex(pattern: str) -> "re.Pattern[str]":
    # Written by Temper: escaped text and alternatives, without repeats that could backtrack.
    return re.compile(pattern)


def _matches_regex(value: MatchValue, thread: ThreadIdentity) -> bool:
    return (
        _engine_regex(str(value)).search(f"/sys/fs/cgroup/{thread.cgroup}".rstrip("/")) is not None
    )


_TESTS: dict[str, Callable[[MatchValue, ThreadIdentity], bool]] = {
    "CgroupPrefix": lambda value, thread: thread.cgroup.startswith(str(value)),
    "CgroupSuffix": lambda value, thread: thread.cgroup.endswith(str(value)),
    "CgroupContains": lambda value, thread: str(value) in thread.cgroup,
    "CgroupRegex": _matches_regex,
    "CommPrefix": lambda value, thread: thread.comm.startswith(str(value)),
    "CommPrefixExclude": lambda value, thread: not thread.comm.startswith(str(value)),
    "PcommPrefix": lambda value, thread: thread.process.startswith(str(value)),
    "PcommPrefixExclude": lambda value, thread: not thread.process.startswith(str(value)),
    "UIDEquals": lambda value, thread: thread.uid == value,
    "IsGroupLeader": lambda value, thread: thread.is_leader is value,
    "IsKthread": lambda _value, thread: thread.is_kthread,
}
