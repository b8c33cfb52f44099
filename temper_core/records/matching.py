"""What a thread is to the engine, and whether one of its matchers holds for it."""

import re
from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

MatchValue = str | bool | int


@frozen
class ThreadIdentity:
    """What the engine's matchers look at. ``cgroup`` as the engine sees it: ``a/b/c/``."""

    cgroup: str
    comm: str
    process: str
    uid: int = 0
    is_kthread: bool = False
    is_leader: bool = False


@frozen
class Matcher:
    """One condition, in the engine's own words: ``Matcher("CommPrefix", "ib_")``."""

    kind: str
    value: MatchValue


def holds(matcher: Matcher, thread: ThreadIdentity) -> bool:
    """Judge one matcher as the engine would; a kind Temper never writes does not hold.

    Semantics read off scx_layered 1.1.4: cgroup paths have no leading and one trailing slash,
    regular expressions are unanchored and see the absolute directory without trailing slash,
    ``IsKthread`` ignores its argument.
    """
    test = _TESTS.get(matcher.kind)
    return test is not None and test(matcher.value, thread)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> "re.Pattern[str]":
    return re.compile(pattern)


def _matches_regex(value: MatchValue, thread: ThreadIdentity) -> bool:
    return _compiled(str(value)).search(f"/sys/fs/cgroup/{thread.cgroup}".rstrip("/")) is not None


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
