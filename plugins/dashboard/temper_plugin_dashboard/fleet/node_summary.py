"""A node on the fleet page, from its agent's ``/observe``. Any version can be read."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import fields, frozen

from temper_core.observed import Row, count, number, pressure_of, rows, table, text

MOST_PODS = 1000
"""Pods of a node that are kept. A kubelet runs 110 by default."""
LONGEST_TEXT = 300


@frozen
class PodRow:
    """A pod of a node. CPU time is in CPUs, memory in bytes."""

    namespace: str
    pod: str
    tier: str
    profile: str
    cpu_used: float | None
    run_delay: float | None
    throttled_ratio: float | None
    memory_bytes: int | None
    threads: int | None


@frozen
class NodeSummary:
    """A node in one window. CPU time is in CPUs."""

    at: str
    mode: str
    reason: str
    detail: str
    engine: str
    generation: int
    cpus: int | None
    violations: int
    defects: int
    cpu_pressure: float | None
    pods_cpu: float
    background_cpu: float
    pods: tuple[PodRow, ...]

    def document(self) -> Mapping[str, Any]:
        """Return it as JSON, with the number of pods in place of the pods."""
        names = [each.name for each in fields(type(self))]
        return {**{name: getattr(self, name) for name in names}, "pods": len(self.pods)}


def summarize(document: Row) -> NodeSummary:
    """Return the summary of an observation. Missing and malformed parts are left out."""
    pods = tuple(_pod(row) for row in rows(document, "pods")[:MOST_PODS])
    return NodeSummary(
        at=_short(document, "at"),
        mode=_short(document, "mode"),
        reason=_short(document, "reason"),
        detail=_short(document, "detail"),
        engine=_short(document, "engine"),
        generation=count(document, "generation") or 0,
        cpus=count(table(document, "machine"), "cpus"),
        violations=len(rows(document, "violations")),
        defects=len(_list(document, "defects")),
        cpu_pressure=pressure_of(document),
        pods_cpu=_sum(pods),
        background_cpu=_sum(pod for pod in pods if pod.tier == "background"),
        pods=pods,
    )


def _pod(row: Row) -> PodRow:
    return PodRow(
        _short(row, "namespace"),
        _short(row, "pod"),
        _short(row, "tier"),
        _short(row, "profile"),
        number(row, "cpu_used"),
        number(row, "run_delay"),
        number(row, "throttled_ratio"),
        count(row, "memory_bytes"),
        count(row, "threads"),
    )


def _sum(pods: Iterable[PodRow]) -> float:
    """Return the CPU time of *pods*, 0 if it is no finite number, which JSON has no text for."""
    total = sum(pod.cpu_used or 0.0 for pod in pods)
    return round(total, 4) if math.isfinite(total) else 0.0


def _short(row: Row, key: str) -> str:
    return text(row, key)[:LONGEST_TEXT]


def _list(row: Row, key: str) -> list[Any]:
    value = row.get(key)
    return value if isinstance(value, list) else []
