"""Decide whether a profile's groups take a thread, as far as its names show."""

from collections.abc import Iterable, Sequence

from temper_core.profiles.matching import matches
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch
from temper_core.records.threads import ThreadIdentity


def takes_by_name(groups: Iterable[ThreadGroup], thread: ThreadIdentity) -> bool | None:
    """Whether a match of one of *groups* takes *thread*. None if more than its names decides.

    A last group without a match is ignored, because it takes threads of any name.
    """
    undecided = False
    for match in (match for group in groups for match in group.match):
        if matches(_by_name(match), thread):
            if match.is_by_name:
                return True
            undecided = True
    return None if undecided else False


def takes_at_birth(groups: Iterable[ThreadGroup], thread: ThreadIdentity) -> bool:
    """Whether a match of one of *groups* that the kernel can evaluate takes *thread*."""
    return any(
        matches(match, thread) for group in groups for match in group.match if match.is_static
    )


def candidates(groups: Sequence[ThreadGroup], thread: ThreadIdentity) -> tuple[ThreadGroup, ...]:
    """Return the groups with a match that may take *thread*, going by its names alone."""
    return tuple(
        group for group in groups if any(matches(_by_name(match), thread) for match in group.match)
    )


def _by_name(match: ThreadMatch) -> ThreadMatch:
    if match.is_by_name:
        return match
    return ThreadMatch(match.comm_prefix, match.comm_pattern, match.process, leader=match.leader)


def first_taker(groups: Iterable[ThreadGroup], thread: ThreadIdentity) -> ThreadGroup | None:
    """Return the first group that takes *thread*. A group without a match takes any thread."""
    for group in groups:
        if not group.match or any(matches(match, thread) for match in group.match):
            return group
    return None
