"""Thread groups as AND blocks of the engine, where the first group that matches wins.

The engine matches layers in order: groups with their own layer, then the tiers, then Open. A
profile has its own order, so a block may have to exclude threads of earlier groups.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

from attrs import frozen

from temper_core.engine.capabilities import LARGEST_OR_COUNT
from temper_core.records.engine_matchers import Matcher
from temper_core.records.thread_groups import ThreadMatch

Condition = tuple[Matcher, ...]

ANYTHING: Condition = ()
# The oldest engine with the Exclude matchers takes 18. One is reserved for the cgroup.
LONGEST_CONDITION = 17
EXCLUDES = {"CommPrefix": "CommPrefixExclude", "PcommPrefix": "PcommPrefixExclude"}


class GroupTarget(Enum):
    """The layer that the threads of a group go to."""

    OWN = "a layer of their own"
    TIER = "the layer of the pod's tier"
    OPEN = "the Open layer"


@frozen
class Part:
    """One group of a profile. A group without a match takes the rest.

    A match that needs steering counts by its name alone, but no thread is certain to be taken by
    it.
    """

    matches: tuple[ThreadMatch, ...]
    goal: GroupTarget
    takes_rest: bool = False


def own_conditions(parts: Sequence[Part], position: int) -> tuple[Condition, ...]:
    """Return the conditions of the threads that the part at *position* takes into its own layer."""
    earlier = [
        match
        for part in parts[:position]
        for match in part.matches
        if match.is_static and part.goal is not GroupTarget.OWN
    ]
    return _without_all(_positives(parts[position]), earlier)


def tier_conditions(parts: Sequence[Part]) -> tuple[Condition, ...]:
    """Return the conditions of the threads that stay in the tier's layer.

    They may include threads of groups with their own layer, because that layer matches first.
    """
    if all(part.goal is not GroupTarget.OPEN for part in parts):
        return () if _rest_goal(parts) is GroupTarget.OWN and not _stays(parts) else (ANYTHING,)
    conditions: list[Condition] = []
    yielded: list[ThreadMatch] = []
    for part in parts:
        if part.goal is GroupTarget.OPEN:
            yielded += [match for match in part.matches if match.is_static]
        elif part.goal is GroupTarget.TIER and not part.takes_rest:
            conditions += _without_all(_positives(part), yielded)
    if _rest_goal(parts) is GroupTarget.TIER:
        conditions += _without_all((ANYTHING,), yielded)
    return tuple(dict.fromkeys(conditions))


def is_too_much(conditions: Sequence[Condition]) -> bool:
    """Whether the engine cannot take *conditions* even for a single pod."""
    if len(conditions) > LARGEST_OR_COUNT:
        return True
    return any(len(condition) > LONGEST_CONDITION for condition in conditions)


def _rest_goal(parts: Sequence[Part]) -> GroupTarget:
    return next((part.goal for part in parts if part.takes_rest), GroupTarget.TIER)


def _stays(parts: Sequence[Part]) -> bool:
    return any(part.goal is GroupTarget.TIER for part in parts)


def _positives(part: Part) -> tuple[Condition, ...]:
    return (ANYTHING,) if part.takes_rest else tuple(_positive(match) for match in part.matches)


def _positive(match: ThreadMatch) -> Condition:
    matchers = (
        ("CommPrefix", match.comm_prefix),
        ("PcommPrefix", match.process),
        ("IsGroupLeader", match.leader),
    )
    return tuple(Matcher(kind, value) for kind, value in matchers if value is not None)


def _without_all(
    conditions: Iterable[Condition], matches: Iterable[ThreadMatch]
) -> tuple[Condition, ...]:
    """Exclude every thread of *matches* from *conditions*. Stop beyond the engine's limit."""
    remaining = list(conditions)
    for match in matches:
        remaining = [block for condition in remaining for block in _without(condition, match)]
        if len(remaining) > LARGEST_OR_COUNT:
            break
    return tuple(dict.fromkeys(remaining))


def _without(condition: Condition, match: ThreadMatch) -> list[Condition]:
    """Return *condition* and not *match*, as alternative blocks."""
    blocks: list[Condition] = []
    for matcher in _positive(match):
        narrowed = _and_not(condition, matcher)
        if narrowed == condition:
            return [condition]
        if narrowed is not None:
            blocks.append(narrowed)
    return blocks


def _and_not(condition: Condition, matcher: Matcher) -> Condition | None:
    """Return *condition* and not *matcher*. ``None`` if no thread is left."""
    same = next((other for other in condition if other.kind == matcher.kind), None)
    if matcher.kind == "IsGroupLeader":
        if same is None:
            return (*condition, Matcher(matcher.kind, not matcher.value))
        return condition if same.value != matcher.value else None
    return _and_not_prefix(condition, matcher, same)


def _and_not_prefix(
    condition: Condition, matcher: Matcher, same: Matcher | None
) -> Condition | None:
    prefix = str(matcher.value)
    if same is not None and str(same.value).startswith(prefix):
        return None
    if same is not None and not prefix.startswith(str(same.value)):
        return condition
    kind = EXCLUDES[matcher.kind]
    excludes = [other for other in condition if other.kind == kind]
    if any(prefix.startswith(str(other.value)) for other in excludes):
        return condition
    remaining = tuple(
        other
        for other in condition
        if other not in excludes or not str(other.value).startswith(prefix)
    )
    return (*remaining, Matcher(kind, prefix))
