"""The fields of a Node object that scores depend on.

The annotations are the agent's (docs/kubernetes.md). Every client with the right to patch nodes can
write them: a malformed annotation counts as missing and is reported as a problem.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from attrs import field, frozen

from temper_core import InputError, Tier, cpu_millis

PREFIX = "temper.codes/"
MODE = f"{PREFIX}agent-mode"
UPDATED = f"{PREFIX}tiers-updated"
FENCED = f"{PREFIX}fenced-cores"
BUDGET = f"{PREFIX}fence-budget-cores"
CORE_CPUS = f"{PREFIX}threads-per-core"
TIER_MILLIS = {tier: f"{PREFIX}tier-{tier}-cpu-millis" for tier in Tier}
ENFORCING_MODES = ("enforcing", "reloading")
"""A reload is about 50 ms without the policy, too short to affect placement."""

LONGEST_QUOTE = 60
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)
_TIME = re.compile(
    r"2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}(?:Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


@frozen
class NodeFacts:
    """The last known state of a node. Missing and malformed values are None.

    ``told_at`` is when the agent last updated its numbers, in seconds since the epoch. ``problems``
    name the malformed annotations.
    """

    name: str
    allocatable_millis: int | None = None
    mode: str = ""
    told_at: float | None = None
    tier_millis: int = 0
    fenced_cores: int | None = None
    budget_cores: int | None = None
    core_cpus: int | None = None
    problems: tuple[str, ...] = field(default=())

    @property
    def is_enforcing(self) -> bool:
        """Whether fences are in force on the node, according to the agent."""
        return self.mode in ENFORCING_MODES


def read_node(item: Mapping[str, Any]) -> NodeFacts | None:
    """Read a Node object. None if it has no name. Never raises."""
    metadata, status = _table(item, "metadata"), _table(item, "status")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        return None
    annotations = _table(metadata, "annotations")
    problems: list[str] = []
    whole = {key: _whole(annotations, key, problems) for key in (FENCED, BUDGET, CORE_CPUS)}
    return NodeFacts(
        name=name,
        allocatable_millis=_allocatable(_table(status, "allocatable"), problems),
        mode=str(annotations.get(MODE, ""))[:LONGEST_QUOTE],
        told_at=_told_at(annotations, problems),
        tier_millis=sum(_whole(annotations, key, problems) or 0 for key in TIER_MILLIS.values()),
        fenced_cores=whole[FENCED],
        budget_cores=whole[BUDGET],
        core_cpus=whole[CORE_CPUS] or None,
        problems=tuple(problems),
    )


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key)
    return value if isinstance(value, Mapping) else {}


def _whole(annotations: Mapping[str, Any], key: str, problems: list[str]) -> int | None:
    for text in _said(annotations, key):
        if _WHOLE.fullmatch(text):
            return int(text)
        problems.append(f"{key} is not a whole number: {text[:LONGEST_QUOTE]!r}")
    return None


def _told_at(annotations: Mapping[str, Any], problems: list[str]) -> float | None:
    for text in _said(annotations, UPDATED):
        try:
            if _TIME.fullmatch(text):
                return datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError):
            pass  # an invalid day, or a time zone of 24 h
        problems.append(f"{UPDATED} is not an RFC 3339 time: {text[:LONGEST_QUOTE]!r}")
    return None


def _said(annotations: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield the annotation *key*, if it exists."""
    if key in annotations:
        yield str(annotations[key])


def _allocatable(allocatable: Mapping[str, Any], problems: list[str]) -> int | None:
    if "cpu" not in allocatable:
        return None
    try:
        return cpu_millis(allocatable["cpu"])
    except InputError as error:
        problems.append(f"status.allocatable.cpu: {error}")
        return None
