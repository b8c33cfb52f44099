"""The JSON of ``/wakes``: the state of watching, and the last window."""

import math
import time
from collections.abc import Sequence
from typing import Any

from temper_core import Party, WaitHistogram, WakeWindow, rfc3339
from temper_plugin_tracer.state import WakeState

DIGITS = 6

Json = dict[str, Any]


def wakes_document(state: WakeState) -> Json:
    """Return the state of watching as JSON. ``until`` is null if watching has no end."""
    left_s = state.wanted_until - time.monotonic()
    has_end = left_s > 0 and not math.isinf(left_s)
    return {
        "is_on": left_s > 0,
        "until": rfc3339(time.time() + left_s) if has_end else None,
        "reason": state.reason,
        "windows": state.windows,
        "kernel_cpu_s": round(state.kernel_s, DIGITS),
        "own_cpu_s": round(state.own_s, DIGITS),
        "knows_interrupts": state.knows_interrupts,
        "window": None if state.window is None else window_document(state.window),
    }


def window_document(window: WakeWindow) -> Json:
    """Return one window as JSON."""
    return {
        "at": rfc3339(window.at),
        "length_s": round(window.length_s, DIGITS),
        "every_s": round(window.every_s, DIGITS),
        "switches_per_s": round(window.switches_per_s, 1),
        "lost": window.lost,
        "edges": [
            {"waker": _party(edge.waker), "wakee": _party(edge.wakee), "wakes": edge.wakes}
            for edge in window.edges
        ],
        "blockings": [
            {
                "waiter": _party(blocking.waiter),
                "runner": _party(blocking.runner),
                "waits": blocking.waits,
                "waited_s": round(blocking.waited_s, DIGITS),
            }
            for blocking in window.blockings
        ],
        "waits": [_histogram(histogram) for histogram in window.waits],
    }


def bound_us(counts: Sequence[int], share: float) -> int | None:
    """Return the microseconds that *share* of the waits stayed under, a power of two.

    The result is None without waits, or if the quantile is in the last bucket, which is unbounded.
    """
    rank = share * sum(counts)
    total = 0
    for power, count in enumerate(counts[:-1]):
        total += count
        if rank and total >= rank:
            return 1 << power
    return None


def _party(party: Party) -> Json:
    return {
        "tid": party.tid,
        "comm": party.comm,
        "process": party.process,
        "pod": party.pod,
        "layer": party.layer,
    }


def _histogram(histogram: WaitHistogram) -> Json:
    return {
        "subject": histogram.subject,
        "waits": sum(histogram.counts),
        "total_s": round(histogram.total_s, DIGITS),
        "p50_under_us": bound_us(histogram.counts, 0.5),
        "p99_under_us": bound_us(histogram.counts, 0.99),
        "counts": list(histogram.counts),
    }
