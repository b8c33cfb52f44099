"""The caps of a node, as its specification asks for them."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from temper_plugin_power.numbers import clamped
from temper_plugin_power.operating.twin import Hardware

FULL_PCT = 100.0


@frozen
class CapShares:
    """The caps of nodes by their profile: in percent of each device's maximum, or in watts."""

    cpu_performance_pct: float = 100.0
    cpu_eco_pct: float = 60.0
    gpu_performance_pct: float = 100.0
    gpu_eco_pct: float = 60.0
    cpu_in_watts: bool = False
    """Whether CPU caps are *performance_watts* and *eco_watts* of each package."""
    gpu_in_watts: bool = False
    """Whether GPU caps have watts beside the percentage."""
    performance_watts: float = 5000.0
    eco_watts: float = 120.0
    gpu_models: Mapping[str, float] = field(factory=dict)
    """The greatest cap of GPUs in watts, by product."""

    def cpu_pct(self, profile: str) -> float:
        """Return the CPU cap of a profile in percent."""
        return self.cpu_eco_pct if profile == "eco" else self.cpu_performance_pct

    def gpu_pct(self, profile: str) -> float:
        """Return the GPU cap of a profile in percent."""
        return self.gpu_eco_pct if profile == "eco" else self.gpu_performance_pct

    def cpu_watts(self, profile: str) -> float:
        """Return the CPU cap of a profile in watts of a package."""
        return self.eco_watts if profile == "eco" else self.performance_watts


def caps_of(profile: str, shares: CapShares, hardware: Hardware) -> Mapping[str, Any]:
    """Return the caps of a node as its NodeTwin writes them. 0 percent or less is no cap.

    A node with GPUs gets no CPU cap: capping the CPU that feeds a GPU costs more than it saves.
    A cap in watts is within the range of the device. Without a known range it stays a percentage.
    """
    if hardware.has_gpu:
        return _gpu_cap(shares.gpu_pct(profile), shares, hardware)
    return _cpu_cap(profile, shares, hardware)


def uncapped_by(profile: str, shares: CapShares, hardware: Hardware) -> str:
    """Return the name of the percentage that leaves a node without a cap, empty if it has one."""
    device = "gpu" if hardware.has_gpu else "cpu"
    pct = shares.gpu_pct(profile) if hardware.has_gpu else shares.cpu_pct(profile)
    return f"{device}_{profile}_pct" if pct <= 0 else ""


def effective_cpu_pct(caps: Mapping[str, Any], hardware: Hardware) -> float:
    """Return the CPU cap of *caps* in percent of the maximum. 0 is no cap."""
    cpu = caps.get("cpu", {})
    if "packagePowerCapWatts" in cpu:
        return float(cpu["packagePowerCapWatts"] / hardware.max_watts_per_socket * FULL_PCT)
    return float(cpu.get("packagePowerCapPctOfMax", 0.0))


def _cpu_cap(profile: str, shares: CapShares, hardware: Hardware) -> Mapping[str, Any]:
    pct = shares.cpu_pct(profile)
    if pct <= 0:
        return {}
    least, most = hardware.min_watts_per_socket, hardware.max_watts_per_socket
    if not shares.cpu_in_watts or most <= 0:
        return {"cpu": {"packagePowerCapPctOfMax": pct}}
    watts = clamped(shares.cpu_watts(profile), min(least, most), most)
    return {"cpu": {"packagePowerCapWatts": watts}}


def _gpu_cap(pct: float, shares: CapShares, hardware: Hardware) -> Mapping[str, Any]:
    if pct <= 0:
        return {}
    cap = {"scope": "perGpu", "capPctOfMax": pct}
    least, most = hardware.min_watts_per_gpu, hardware.max_watts_per_gpu
    if not shares.gpu_in_watts or most <= 0:
        return {"gpu": {"powerCap": cap}}
    watts = clamped(most * pct / FULL_PCT, min(least, most), most)
    return {"gpu": {"powerCap": {**cap, "capWattsPerGpu": watts}}}
