"""How long the threads of a container waited: pressure stall information (PSI)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from temper_plugin_rightsizer.demand.interval import Counts

WORTH = 0.01
"""A share of the time from which on a wait is reported."""


NOT_MEASURED = (
    "PSI of no container was measured: the kernel has none (CONFIG_PSI, psi=1), they have no "
    "cgroup of their own, or the agent has just begun"
)


def pressure_notes(containers: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return a note if no row of a report has any pressure."""
    known = [row["used"]["pressure"] is not None for row in containers]
    return (NOT_MEASURED,) if known and not any(known) else ()


def pressure(counts: Counts) -> Mapping[str, float] | None:
    """Return the shares of the measured time in which threads waited. None if none was measured.

    ``cpu_unthrottled`` is the least share that throttling does not explain. A throttled thread
    counts as waiting for a CPU. The throttled time is a sum over CPUs, and so at least as long.
    """
    if not counts.pressure_s:
        return None
    stalls = {
        "cpu": counts.cpu_some_s,
        "cpu_unthrottled": max(counts.cpu_some_s - counts.throttled_s, 0.0),
        "memory": counts.memory_some_s,
        "memory_full": counts.memory_full_s,
        "io": counts.io_some_s,
        "io_full": counts.io_full_s,
    }
    return {name: round(min(time / counts.pressure_s, 1.0), 4) for name, time in stalls.items()}


def pressure_reasons(counts: Counts) -> Iterator[str]:
    """Yield the waits that are worth reporting."""
    shares = pressure(counts)
    if shares is None:
        return
    if shares["cpu"] >= WORTH:
        told = f"a thread waited for a CPU in {shares['cpu']:.1%} of the time (PSI cpu some)"
        if counts.throttled_s:
            told += f", in {shares['cpu_unthrottled']:.1%} at least not by throttling"
        yield told
    for resource, words in (("memory", "memory"), ("io", "I/O")):
        if shares[resource] >= WORTH:
            yield (
                f"a thread waited for {words} in {shares[resource]:.1%} of the time, and all "
                f"threads at once in {shares[f'{resource}_full']:.1%} (PSI {resource} some, full)"
            )
