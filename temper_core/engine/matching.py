"""Evaluates matchers on a thread, as the engine does."""

import re
from collections.abc import Callable
from functools import lru_cache

from temper_core.records.engine_matchers import Matcher, MatchValue
from temper_core.records.threads import ThreadIdentity


def holds(matcher: Matcher, thread: ThreadIdentity) -> bool:
    """Evaluate one matcher as the engine does. A kind that Temper never writes does not hold.

    The semantics are those of scx_layered 1.1.4: cgroup paths have no leading and one trailing
    slash, regular expressions are unanchored and see the absolute directory without trailing
    slash, ``IsKthread`` ignores its argument.
    """
    test = _TESTS.get(matcher.kind)
    return test is not None and test(matcher.value, thread)


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
