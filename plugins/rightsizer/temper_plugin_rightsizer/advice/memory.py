"""The memory request and limit."""

import math

from attrs import frozen

from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.demand.interval import IntervalDemand

MIB = 1024 * 1024
RAISED_BY = 1.5
"""A limit that the container ran into grows by this factor: what it would have used is unknown."""


@frozen
class MemoryAdvice:
    """Bytes. None if nothing is recommended."""

    request_bytes: int | None
    limit_bytes: int | None
    reasons: tuple[str, ...]


def advise_memory(
    demand: IntervalDemand, limit_bytes: int | None, options: AdviceOptions
) -> MemoryAdvice:
    """Return advice for *demand* of a container with the memory limit *limit_bytes*, or none.

    The request covers the peak with a margin. A container that was killed or met its limit gets a
    higher limit. A limit is never lowered below the request.
    """
    peak = demand.peak_bytes()
    if not peak:
        return MemoryAdvice(None, None, ("no cgroup accounts for its memory",))
    request = round_up_mib(peak * options.memory_margin)
    reason = f"the peak is {mib(peak)}: {options.memory_margin:g} x = {mib(request)}"
    if limit_bytes is None:
        return MemoryAdvice(request, None, (reason,))
    incidents = _incidents(demand)
    if incidents:
        limit = round_up_mib(max(limit_bytes * RAISED_BY, request))
        raised = f"{incidents}: limit {mib(limit_bytes)} -> {mib(limit)}"
        return MemoryAdvice(max(request, round_up_mib(limit_bytes)), limit, (reason, raised))
    return MemoryAdvice(request, max(request, limit_bytes), (reason,))


def _incidents(demand: IntervalDemand) -> str:
    """Return kills and near misses in words, empty without any."""
    counts = demand.counts
    parts = [
        f"{count} {name}"
        for count, name in (
            (counts.oom_kill, "OOM kills"),
            (counts.max, "allocations at the limit"),
        )
        if count
    ]
    return " and ".join(parts)


def round_up_mib(size: float) -> int:
    """Return *size* in bytes, rounded up to MiB."""
    return math.ceil(size / MIB) * MIB


def mib(size: int) -> str:
    """Return *size* in whole MiB, as Kubernetes writes it: ``128Mi``."""
    return f"{math.ceil(size / MIB)}Mi"
