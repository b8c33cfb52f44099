"""Whether the advice for a namespace fits into its ResourceQuotas."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import define, field

from temper_plugin_rightsizer.advice.cpu import cores
from temper_plugin_rightsizer.advice.memory import mib

Row = Mapping[str, Any]
Show = Callable[[int], str]
FIELDS: Mapping[str, tuple[tuple[str, ...], str, Show]] = {
    "cpu_request_millis": (("requests.cpu", "cpu"), "CPU requests", cores),
    "cpu_limit_millis": (("limits.cpu",), "CPU limits", cores),
    "memory_request_bytes": (("requests.memory", "memory"), "memory requests", mib),
    "memory_limit_bytes": (("limits.memory",), "memory limits", mib),
}
"""The names in a quota, that in words, and how to show an amount, by field of ``Resources``."""


@define
class Quotas:
    """The free part of the quotas of each namespace: name of the quota and amount, by field."""

    left: dict[tuple[str, str], tuple[str, int]] = field(factory=dict)

    def bound(self, namespace: str, name: str, quota: str, rest: int) -> None:
        """Note that *quota* leaves *rest* of a field. The smallest rest counts."""
        known = self.left.get((namespace, name))
        if known is None or rest < known[1]:
            self.left[namespace, name] = quota, rest

    def told(self, containers: Iterable[Row]) -> Mapping[tuple[str, str], str]:
        """Return a sentence for each namespace and field whose advice does not fit."""
        sums: dict[tuple[str, str], int] = {}
        for row in containers:
            for name in FIELDS:
                place = row["namespace"], name
                sums[place] = sums.get(place, 0) + increase(row, name)
        told = {}
        for place, added in sums.items():
            quota, rest = self.left.get(place, ("", added))
            _, words, show = FIELDS[place[1]]
            if added > rest:
                told[place] = (
                    f"the quota {quota} leaves {show(max(rest, 0))} of {words}, and the advice for "
                    f"the namespace adds {show(added)}: it does not fit"
                )
        return told


def increase(row: Row, name: str) -> int:
    """Return how much more all replicas of a container would have, negative if less."""
    wanted, current = row["recommended"][name], row["current"][name]
    if wanted is None:
        return 0
    return int((wanted - (current or 0)) * (row.get("replicas") or 1))


def with_quotas(containers: Iterable[dict[str, Any]], quotas: Quotas) -> list[dict[str, Any]]:
    """Return the rows of a report, those that do not fit with the reason."""
    listed = list(containers)
    told = quotas.told(listed)
    for row in listed:
        reasons = [
            told[row["namespace"], name]
            for name in FIELDS
            if (row["namespace"], name) in told and increase(row, name) > 0
        ]
        row["reasons"] = [*row["reasons"], *reasons]
    return listed
