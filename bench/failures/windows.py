"""Latencies around a failure: by second, and by the scheduler at the time of the arrival."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from bench.ladder.spreads import percentile

Json = dict[str, Any]
WINDOW_S = 1.0
LEAST_REQUESTS = 20
"""A window with fewer requests is a part of one, at the begin or the end of the run."""


@frozen
class Request:
    """One request: its intended arrival, in seconds since the failure, and its latency in ms."""

    at_s: float
    ms: float


def requests_of(seen: Json, struck_s: float) -> list[Request]:
    """Return the requests of ``load serve ... arrivals=1``, in the order of their arrivals."""
    return [
        Request(at_ns / 1e9 - struck_s, (wait_ns + service_ns) / 1e6)
        for wait_ns, service_ns, at_ns in seen["requests"]
    ]


def windows(requests: Iterable[Request]) -> list[Json]:
    """Return the figures of each second, from the failure on forth and back."""
    by_second: dict[int, list[Request]] = {}
    for request in requests:
        by_second.setdefault(int(request.at_s // WINDOW_S), []).append(request)
    return [
        {"at_s": second * WINDOW_S, **figures(by_second[second])} for second in sorted(by_second)
    ]


def worst(of: Sequence[Json]) -> Json:
    """Return the window with the highest p99, of those with enough requests."""
    return max(
        (each for each in of if each["requests"] >= LEAST_REQUESTS), key=lambda each: each["p99"]
    )


def figures(requests: Sequence[Request]) -> Json:
    """Return the number of requests, and p50, p99 and the longest in ms."""
    ordered = sorted(request.ms for request in requests)
    if not ordered:
        return {"requests": 0}
    named = {f"p{percent}": round(percentile(ordered, percent), 3) for percent in (50, 99)}
    return {"requests": len(ordered), **named, "max": round(ordered[-1], 3)}


def phases(requests: Iterable[Request], spans: Sequence[tuple[float, float]]) -> Mapping[str, Json]:
    """Return the figures before the failure, on the stock scheduler, and with an engine again.

    *spans* are the times of the stock scheduler, in seconds since the failure. A request belongs to
    the scheduler that the kernel has at its arrival.
    """
    kinds: Mapping[str, Callable[[Request], bool]] = {
        "before": lambda each: each.at_s < 0,
        "stock": lambda each: each.at_s >= 0 and _is_in(each.at_s, spans),
        "engine": lambda each: each.at_s >= 0 and not _is_in(each.at_s, spans),
    }
    all_requests = list(requests)
    return {kind: figures(list(filter(holds, all_requests))) for kind, holds in kinds.items()}


def _is_in(at_s: float, spans: Sequence[tuple[float, float]]) -> bool:
    return any(begin <= at_s < end for begin, end in spans)
