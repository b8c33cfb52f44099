"""The memory request and limit."""

import math

from attrs import frozen

from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.advice.records import Leak, Resources
from temper_plugin_rightsizer.demand.growth import HOUR_S, Growth
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
    leak: Leak | None = None


def advise_memory(
    demand: IntervalDemand,
    current: Resources,
    options: AdviceOptions,
    leak: Growth | None = None,
) -> MemoryAdvice:
    """Return advice for *demand* of a container with the *current* resources.

    The request covers the peak with a margin. A container that was killed or met its limit gets a
    higher limit. A limit is never lowered below the request. Nothing is raised for a *leak*, as no
    amount is enough.
    """
    limit_bytes = current.memory_limit_bytes
    peak = demand.peak_bytes()
    if not peak:
        return MemoryAdvice(None, None, ("no cgroup accounts for its memory",))
    request = round_up_mib(peak * options.memory_margin)
    reason = f"the peak is {mib(peak)}: {options.memory_margin:g} x = {mib(request)}"
    if leak is not None:
        return _of_leak(leak, current, request, (reason, _incidents(demand)))
    if limit_bytes is None:
        return MemoryAdvice(request, None, (reason,))
    incidents = _incidents(demand)
    if incidents:
        limit = round_up_mib(max(limit_bytes * RAISED_BY, request))
        raised = f"{incidents}: limit {mib(limit_bytes)} -> {mib(limit)}"
        return MemoryAdvice(max(request, round_up_mib(limit_bytes)), limit, (reason, raised))
    return MemoryAdvice(request, max(request, limit_bytes), (reason,))


def _of_leak(
    grown: Growth, current: Resources, request: int, facts: tuple[str, str]
) -> MemoryAdvice:
    """Return advice for a leak: what is set stays. *request* is for a container without one.

    *facts* are the reason of *request*, and the incidents so far, or an empty text.
    """
    limit = current.memory_limit_bytes
    left_s = None
    if limit is not None:
        left_s = max(round((limit - grown.last_bytes) / grown.bytes_per_hour * HOUR_S), 0)
    reason, incidents = facts
    told = (
        f"memory leak: the working set grew from {mib(grown.first_bytes)} to "
        f"{mib(grown.last_bytes)} in {grown.seconds / HOUR_S:.1f} h, "
        f"{grown.bytes_per_hour / MIB:.1f} MiB/h"
    )
    if left_s is not None:
        told += f", and meets the limit of {mib(limit or 0)} in {left_s / HOUR_S:.1f} h"
    reasons = [told]
    if incidents:
        reasons.append(f"{incidents}, which the leak explains")
    if current.memory_request_bytes is None:
        reasons.append(f"{reason}, until the leak has passed it")
    else:
        reasons.append("the memory request and limit stay: no amount is enough for a leak")
    return MemoryAdvice(
        current.memory_request_bytes or request,
        limit,
        tuple(reasons),
        Leak(round(grown.bytes_per_hour), left_s),
    )


def _incidents(demand: IntervalDemand) -> str:
    """Return kills and near misses in words, empty without any."""
    counts = demand.whole().counts
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
