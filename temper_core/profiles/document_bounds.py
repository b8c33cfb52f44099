"""The bounds on the numbers in a profile's document: its groups, their matches and other entries.

They are judged on the parsed table, before anything of it is structured: a file of 256 KiB has room
for 87,000 matches, and structuring as many takes seconds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from temper_core.patterns import cost_problem
from temper_core.records.profile_evidence import MOST_FIGURES
from temper_core.records.profiles import MOST_SIGNS, entries_problem
from temper_core.records.thread_groups import MOST_GROUPS, match_count_problem

SIGNS = ("images", "processes", "annotations", "versions")


def excess(table: Mapping[str, Any]) -> str:
    """Return the first bound that *table* exceeds, by path. Empty if it is within all of them."""
    return next(_excesses(table), "")


def _excesses(table: Mapping[str, Any]) -> Iterator[str]:
    groups = items_of(table.get("thread_groups"))
    if len(groups) > MOST_GROUPS:
        yield f"thread_groups: has {len(groups)} groups, and a profile may have {MOST_GROUPS}"
    matches = _all_matches(table)
    if problem := match_count_problem(len(matches)):
        yield f"thread_groups: {problem}"
    # They are compiled to be judged, which takes seconds for many of them.
    if problem := cost_problem(list(_patterns(matches))):
        yield f"thread_groups: {problem}"
    for key in SIGNS:
        if problem := entries_problem(len(_below(table.get("fingerprint"), key)), MOST_SIGNS):
            yield f"fingerprint.{key}: {problem}"
    if problem := entries_problem(len(_below(table.get("evidence"), "figures")), MOST_FIGURES):
        yield f"evidence.figures: {problem}"


def match_count(table: Mapping[str, Any]) -> int:
    """Return how many matches the groups of *table* have together."""
    return len(_all_matches(table))


def items_of(value: object) -> list[Any]:
    """Return the items of *value*, none if it is no list."""
    return list(value) if isinstance(value, list | tuple) else []


def _all_matches(table: Mapping[str, Any]) -> list[Any]:
    groups = items_of(table.get("thread_groups"))
    return [match for group in groups for match in _below(group, "match")]


def _below(table: object, key: str) -> list[Any]:
    return items_of(table.get(key)) if isinstance(table, Mapping) else []


def _patterns(matches: list[Any]) -> Iterator[str]:
    for match in matches:
        if isinstance(match, Mapping):
            values = (match.get("comm_pattern"), match.get("title_pattern"))
            yield from (value for value in values if isinstance(value, str))
