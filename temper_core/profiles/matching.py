"""Evaluates the match of a thread group on a thread."""

from temper_core.patterns import finds
from temper_core.records.thread_groups import Behaviour, ThreadMatch
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity

LONGEST_TITLE = 1_024
"""Characters of a title that patterns see."""


def matches(match: ThreadMatch, thread: ThreadIdentity) -> bool:
    """Evaluate a profile's match: every given key must hold.

    Patterns are searched in the whole name, or in the beginning of the title, in linear time. A
    condition on a fact that is unknown does not hold.
    """
    if not thread.comm.startswith(match.comm_prefix or ""):
        return False
    if not thread.process.startswith(match.process or ""):
        return False
    if match.leader not in (None, thread.is_leader):
        return False
    return match.is_static or _matches_by_sight(match, thread)


def _matches_by_sight(match: ThreadMatch, thread: ThreadIdentity) -> bool:
    if not (_has_origin(match, thread) and _is_old_enough(match, thread)):
        return False
    if match.comm_pattern is not None and not finds(match.comm_pattern, thread.comm):
        return False
    title = thread.title[:LONGEST_TITLE]
    if match.title_pattern is not None and not finds(match.title_pattern, title):
        return False
    return match.behaviour is None or _behaves(match.behaviour, thread.behaviour)


def _has_origin(match: ThreadMatch, thread: ThreadIdentity) -> bool:
    if not thread.exe.startswith(match.exe or ""):
        return False
    if not thread.parent.startswith(match.parent or ""):
        return False
    return match.is_child in (None, thread.is_child)


def _is_old_enough(match: ThreadMatch, thread: ThreadIdentity) -> bool:
    least = match.older_than_s
    return least is None or (thread.age_s is not None and thread.age_s >= least)


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
