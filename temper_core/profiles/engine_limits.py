"""Compare a profile's requirements with the capabilities of the installed engine."""

from collections.abc import Iterator

from temper_core.engine.capabilities import LARGEST_LAYER_COUNT, Capabilities, known_versions
from temper_core.profiles.conditions import (
    EXCLUDES,
    GroupTarget,
    Part,
    own_conditions,
    tier_conditions,
)
from temper_core.records.profiles import WorkloadProfile
from temper_core.records.thread_groups import ThreadGroup, Treatment

NODES_OWN = 3
"""Layers that belong to no thread group: system, open, and that of the pod's tier."""
MOST_GROUPS = LARGEST_LAYER_COUNT - NODES_OWN
KINDS = {"comm_prefix": "CommPrefix", "process": "PcommPrefix", "leader": "IsGroupLeader"}
GOALS = {
    Treatment.EXCLUSIVE: GroupTarget.OWN,
    Treatment.YIELD: GroupTarget.OPEN,
}


def engine_misfits(profile: WorkloadProfile, capabilities: Capabilities) -> tuple[str, ...]:
    """Return the parts of *profile* that *capabilities* do not support, by path. Empty if none.

    Parts that hints could serve are checked too: hints may disappear at any time, and the node
    must keep its engine then.
    """
    return (
        *_unknown_keys(profile, capabilities),
        *_unknown_kinds(profile, capabilities),
        *_too_many_groups(profile),
    )


def static_parts(profile: WorkloadProfile) -> tuple[Part, ...]:
    """Return the groups as the engine alone can match them, each with its treatment's target."""
    return tuple(
        Part(
            tuple(match for match in group.match if match.is_static),
            GOALS.get(group.treatment, GroupTarget.TIER),
            takes_rest=not group.match,
        )
        for group in profile.thread_groups
    )


def wants_layer(group: ThreadGroup) -> bool:
    """Whether the group requests its own layer."""
    return GOALS.get(group.treatment) is GroupTarget.OWN


def _unknown_keys(profile: WorkloadProfile, capabilities: Capabilities) -> Iterator[str]:
    for number, group in enumerate(profile.thread_groups):
        for place, match in enumerate(group.match):
            for key, kind in KINDS.items():
                if getattr(match, key) is not None and kind not in capabilities.matchers:
                    path = f"thread_groups[{number}].match[{place}].{key}"
                    yield f"{path}: needs {_lacking(kind, capabilities)}"


def _unknown_kinds(profile: WorkloadProfile, capabilities: Capabilities) -> Iterator[str]:
    if capabilities.matchers.keys() >= {*EXCLUDES.values()}:
        return  # the groups of a large profile take half a second to separate
    parts = static_parts(profile)
    own = [
        condition
        for position, part in enumerate(parts)
        if part.goal is GroupTarget.OWN
        for condition in own_conditions(parts, position)
    ]
    kinds = {matcher.kind for block in (*own, *tier_conditions(parts)) for matcher in block}
    for kind in sorted(kinds - {*KINDS.values()} - {*capabilities.matchers}):
        yield f"thread_groups: separating the groups needs {_lacking(kind, capabilities)}"


def _lacking(kind: str, capabilities: Capabilities) -> str:
    there = known_versions("matchers", kind)
    return f"{kind}, which scx_layered {capabilities.version} lacks ({there})"


def _too_many_groups(profile: WorkloadProfile) -> Iterator[str]:
    count = sum(wants_layer(group) for group in profile.thread_groups)
    if count > MOST_GROUPS:
        yield (
            f"thread_groups: {count} groups ask for a layer of their own (exclusive), "
            f"and the engine has room for {MOST_GROUPS}"
        )
