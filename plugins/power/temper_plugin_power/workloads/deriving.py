"""From the measures of a workload's pods to the signals of the rules."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from temper_plugin_power.classifier.cpu import COMPUTE_RATIO, MEMORY_RATIO
from temper_plugin_power.classifier.signals import Signals
from temper_plugin_power.defaults import GPU_PROXY_WATTS
from temper_plugin_power.workloads.energy import Dialect, Energy
from temper_plugin_power.workloads.pods import MeasuredPod, PodMeasures
from temper_plugin_power.workloads.sums import mean, percent, quotient, total
from temper_plugin_power.workloads.threads import thread_evidence

DOMINANT_PCT = 40
BUSY_PCT = 60
PRESSED_PCT = 50
MISSES_PER = 1000


@frozen
class Derived:
    """The signals of a workload, None if nothing was measured, and what they follow from."""

    signals: Signals | None
    evidence: Mapping[str, Any]
    """As in the status of the object; only what is known."""


def derive(
    pods: Sequence[MeasuredPod],
    energy: Energy,
    dialect: Dialect,
    window_s: int,
    gpu_proxy_watts: float = GPU_PROXY_WATTS,
) -> Derived:
    """Return the signals of a workload by the measures of its *pods* over *window_s* seconds.

    Usage is summed and divided by the sum of requests. Utilisation of GPUs and pressure are
    averaged over the pods.
    """
    signals = _signals(pods, energy, dialect, window_s, gpu_proxy_watts)
    evidence = {
        "pods": len(pods),
        "windowSeconds": window_s,
        "memoryPressurePct": signals.memory_pressure_pct,
        "ipc": signals.ipc,
        "llcMpki": signals.llc_mpki,
        **thread_evidence(pods),
        "packageWatts": energy.package_w or None,
        "dialect": str(dialect),
        "energyBound": _energy_bound(signals, energy),
    }
    is_measured = (
        *(signals.cpu_util_pct, signals.gpu_util_pct, signals.memory_pressure_pct),
        *(pod.measures.cpu_rate for pod in pods),
    )
    known = {key: value for key, value in evidence.items() if value is not None}
    return Derived(signals if any(is_measured) else None, known)


def _signals(
    pods: Sequence[MeasuredPod],
    energy: Energy,
    dialect: Dialect,
    window_s: int,
    gpu_proxy_watts: float,
) -> Signals:
    util, pressure = _cpu_util(pods), _memory_pressure(pods)
    gpu_util = mean([_gpu_util(pod.measures, dialect, gpu_proxy_watts) for pod in pods]) or 0.0
    is_dominant = gpu_util > DOMINANT_PCT and gpu_util > (util or 0.0)
    compute, memory = _ratios(energy)
    tells = dialect is Dialect.OLD and not energy.is_shared
    instructions = total(pods, lambda measures: measures.instructions)
    return Signals(
        cpu_util_pct=util,
        memory_pressure_pct=pressure,
        gpu_util_pct=gpu_util,
        cpu_bound_ratio=compute if tells and _is_busy(util) and not is_dominant else 0.0,
        memory_bound_ratio=memory if tells and pressure > PRESSED_PCT else 0.0,
        has_kepler=dialect is Dialect.OLD or energy.gpu_w > 0,
        total_energy_j=energy.total_w * window_s,
        gpu_energy_j=energy.gpu_w * window_s,
        is_gpu_dominant=is_dominant,
        is_energy_shared=energy.is_shared,
        io_pressure=mean([pod.measures.psi_io for pod in pods]),
        memory_stall=mean([pod.measures.psi_memory for pod in pods]),
        ipc=quotient(instructions, total(pods, lambda measures: measures.cycles)),
        llc_mpki=quotient(
            total(pods, lambda measures: measures.llc_misses, MISSES_PER), instructions
        ),
    )


def _cpu_util(pods: Sequence[MeasuredPod]) -> float | None:
    """Return CPU usage by request, None if pods are measured and none has a request or limit."""
    measured = [pod for pod in pods if pod.measures.cpu_rate is not None]
    if not measured:
        return 0.0
    bounded = [pod for pod in measured if pod.cpu_basis]
    used = sum(pod.measures.cpu_rate or 0.0 for pod in bounded)
    return percent(used, sum(pod.cpu_basis for pod in bounded))


def _memory_pressure(pods: Sequence[MeasuredPod]) -> float:
    """Return the working set by the limit. 0 without a limit."""
    bounded = [
        pod for pod in pods if pod.memory_limit_bytes and pod.measures.mem_working_set is not None
    ]
    used = sum(pod.measures.mem_working_set or 0.0 for pod in bounded)
    return percent(used, sum(pod.memory_limit_bytes for pod in bounded)) or 0.0


def _gpu_util(measures: PodMeasures, dialect: Dialect, full_watts: float) -> float | None:
    """Return the GPUs' own figure, else an estimate by their power."""
    watts = measures.kepler_gpu_rate
    if measures.dcgm_gpu_util is not None or dialect is Dialect.NONE or not watts:
        return measures.dcgm_gpu_util
    return percent(watts, full_watts)


def _ratios(energy: Energy) -> tuple[float, float]:
    """Return package by all energy, and DRAM by package and DRAM. 0 without DRAM energy."""
    if not energy.dram_w:
        return 0.0, 0.0
    return energy.package_w / energy.total_w, energy.dram_w / (energy.package_w + energy.dram_w)


def _energy_bound(signals: Signals, energy: Energy) -> str:
    """Return the class of CPU work by energy. It is unknown if energy allows no conclusion."""
    if energy.is_shared or (energy.package_w and not energy.dram_w):
        return "unknown"
    if signals.cpu_bound_ratio > COMPUTE_RATIO:
        return "compute"
    return "memory" if signals.memory_bound_ratio > MEMORY_RATIO else "none"


def _is_busy(util: float | None) -> bool:
    return util is not None and util >= BUSY_PCT
