"""Decide whether a profile's groups take a thread, as far as its names show."""

from collections.abc import Iterable, Sequence

from attrs import evolve

from temper_core.profiles.matching import matches
from temper_core.records.profiles import ThreadGroup, ThreadMatch
from temper_core.records.threads import ThreadIdentity


def takes_by_name(groups: Iterable[ThreadGroup], thread: ThreadIdentity) -> bool | None:
    """Whether a match of one of *groups* takes *thread*. None if title or behaviour decide.

    A last group without a match is ignored, because it takes threads of any name.
    """
    undecided = False
    for match in (match for group in groups for match in group.match):
        if matches(_by_name(match), thread):
            if _is_name_alone(match):
                return True
            undecided = True
    return None if undecided else False


def candidates(groups: Sequence[ThreadGroup], thread: ThreadIdentity) -> tuple[ThreadGroup, ...]:
    """Return the groups with a match that may take *thread*, if title and behaviour allow it."""
    return tuple(
        group for group in groups if any(matches(_by_name(match), thread) for match in group.match)
    )


def _is_name_alone(match: ThreadMatch) -> bool:
    return match.title_pattern is None and match.behaviour is None


def _by_name(match: ThreadMatch) -> ThreadMatch:
    if _is_name_alone(match):
        return match
    return evolve(match, title_pattern=None, behaviour=None)


def first_taker(groups: Iterable[ThreadGroup], thread: ThreadIdentity) -> ThreadGroup | None:
    """Return the first group that takes *thread*. A group without a match takes any thread."""
    for group in groups:
        if not group.match or any(matches(match, thread) for match in group.match):
            return group
    return None
