"""Evidence that is better than energy: pressure stalls and counters of the processor.

docs/power.md has the verdicts and their thresholds. The later one counts.
"""

from collections.abc import Iterator

from attrs import frozen

from temper_plugin_power.classifier.signals import Signals

IO_STALL = 0.20
MEMORY_STALL = 0.10
LOW_IPC = 0.70
HIGH_IPC = 1.20
HIGH_MPKI = 10
LOW_MPKI = 5


@frozen
class Verdict:
    """The bound and the sensitivity by one piece of evidence."""

    bound: str
    cap_sensitivity: str
    reason: str


def verdicts(signals: Signals) -> Iterator[Verdict]:
    """Yield the verdicts of pressure and counters, the weaker first. None if the GPU dominates."""
    if not signals.is_gpu_dominant:
        yield from _of_pressure(signals.io_pressure or 0.0, signals.memory_stall or 0.0)
        if signals.ipc is not None and signals.llc_mpki is not None:
            yield from _of_counters(signals.ipc, signals.llc_mpki)


def _of_pressure(io: float, memory: float) -> Iterator[Verdict]:
    if io >= IO_STALL:
        why = f"psi override: cpu-bound=io (io-pressure {io:.0%}≥{IO_STALL:.0%})"
        yield Verdict("io", "low", why)
    if memory >= MEMORY_STALL:
        why = f"psi override: cpu-bound=memory (memory-pressure {memory:.0%}≥{MEMORY_STALL:.0%})"
        yield Verdict("memory", "low", why)


def _of_counters(ipc: float, mpki: float) -> Iterator[Verdict]:
    if ipc < LOW_IPC and mpki >= HIGH_MPKI:
        facts = f"ipc {ipc:.2f}<{LOW_IPC:.2f}, llc-mpki {mpki:.1f}≥{HIGH_MPKI:.1f}"
        yield Verdict("memory", "low", f"counter override: cpu-bound=memory ({facts})")
    if ipc >= HIGH_IPC and mpki < LOW_MPKI:
        facts = f"ipc {ipc:.2f}≥{HIGH_IPC:.2f}, llc-mpki {mpki:.1f}<{LOW_MPKI:.1f}"
        yield Verdict("compute", "high", f"counter override: cpu-bound=compute ({facts})")
