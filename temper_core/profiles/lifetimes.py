"""The groups that a thread is in over its life, by what the agent does at each of its ages.

At its start the kernel side gives a thread the hint of the first match on prefixes of names. User
space decides all other matches when it looks at the thread, which a short-lived one may not live to
see. Matches on age take a thread later still.
"""

from collections.abc import Sequence
from itertools import pairwise

from attrs import evolve, field, frozen
from attrs.validators import ge, gt

from temper_core.profiles.covering import first_taker
from temper_core.profiles.matching import matches
from temper_core.records.steering import BEHAVIOUR_WINDOW_S, LOOK_EVERY_S
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.records.threads import ThreadIdentity

BEHAVIOUR_AFTER_S = 2 * BEHAVIOUR_WINDOW_S
"""Two windows have to agree before any thread is decided in a profile that asks for behaviour."""


@frozen
class Lifetime:
    """The part of a thread's life to account for: from ``age_s`` on, for ``lasts_s``. Seconds."""

    lasts_s: float = field(validator=gt(0.0))
    age_s: float = field(default=0.0, validator=ge(0.0))

    @property
    def end_s(self) -> float:
        """The age at the end."""
        return self.age_s + self.lasts_s


@frozen
class Stay:
    """A group, None for none, and the ``share`` of the life that the thread is in it.

    ``is_late`` if the thread is there only because user space has not decided yet.
    """

    group: ThreadGroup | None
    share: float
    is_late: bool = False


def group_stays(
    groups: Sequence[ThreadGroup], thread: ThreadIdentity, life: Lifetime
) -> tuple[Stay, ...]:
    """Return the groups that *thread* is in on a steered node, with shares that sum to 1.

    A look comes at any moment of ``LOOK_EVERY_S`` with equal probability. The shares are
    expectations.
    """
    wait_s = min(life.lasts_s, _undecided_s(groups, life))
    decided = _decided(groups, thread, life.age_s + wait_s, life.end_s)
    if not wait_s:
        return decided
    first = Stay(_at_birth(groups, thread), wait_s / life.lasts_s, is_late=True)
    left = 1 - first.share
    later = [evolve(stay, share=stay.share * left) for stay in decided]
    if later[0].group is first.group:
        return (evolve(later[0], share=later[0].share + first.share), *later[1:])
    return (first, *(stay for stay in later if left))


def _at_birth(groups: Sequence[ThreadGroup], thread: ThreadIdentity) -> ThreadGroup | None:
    """Return the group by the first rule that the kernel side can evaluate.

    A thread that may belong to an earlier group by its behaviour does not yield: it is in none.
    """
    undecided: list[ThreadMatch] = []
    for group in groups:
        known = [match for match in group.match if match.is_static]
        if not group.match or any(matches(match, thread) for match in known):
            yields = group.treatment is Treatment.YIELD
            waits = yields and any(matches(match, thread) for match in undecided)
            return None if waits else group
        asking = (match for match in group.match if match.behaviour is not None)
        undecided += (evolve(match, behaviour=None) for match in asking)
    return None


def _undecided_s(groups: Sequence[ThreadGroup], life: Lifetime) -> float:
    """Return for how many seconds of *life* user space has not decided, on average."""
    conditions = [match for group in groups for match in group.match]
    if all(match.is_static for match in conditions):
        return 0.0
    asks_behaviour = any(match.behaviour is not None for match in conditions)
    first_s = BEHAVIOUR_AFTER_S if asks_behaviour else 0.0
    return _waited_s(life.end_s, first_s) - _waited_s(life.age_s, first_s)


def _waited_s(age_s: float, first_s: float) -> float:
    """Return the mean of the lesser of *age_s* and the age at the decision.

    The latter is uniform from *first_s* to ``LOOK_EVERY_S`` later.
    """
    into_s = min(max(0.0, age_s - first_s), LOOK_EVERY_S)
    return min(age_s, first_s) + into_s - into_s**2 / (2 * LOOK_EVERY_S)


def _decided(
    groups: Sequence[ThreadGroup], thread: ThreadIdentity, from_s: float, end_s: float
) -> tuple[Stay, ...]:
    """Return the stays by all matches, from one age that a match asks for to the next."""
    asked = {match.older_than_s for group in groups for match in group.match}
    bounds = sorted(age_s for age_s in asked if age_s is not None and from_s < age_s < end_s)
    lasts_s = end_s - from_s
    stays: list[Stay] = []
    for begins_s, ends_s in pairwise([from_s, *bounds, end_s]):
        group = first_taker(groups, evolve(thread, age_s=begins_s))
        share = (ends_s - begins_s) / lasts_s if lasts_s else 1.0
        if stays and stays[-1].group is group:
            stays[-1] = evolve(stays[-1], share=stays[-1].share + share)
        else:
            stays.append(Stay(group, share))
    return tuple(stays)
