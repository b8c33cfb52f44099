"""The caps of a node, as its specification asks for them."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen


@frozen
class CapShares:
    """Caps in percent of each device's maximum, by the profile of the node."""

    cpu_performance_pct: float = 100.0
    cpu_eco_pct: float = 60.0
    gpu_performance_pct: float = 100.0
    gpu_eco_pct: float = 60.0


def caps_of(profile: str, shares: CapShares, *, has_gpu: bool) -> Mapping[str, Any]:
    """Return the caps of a node as its NodeTwin writes them. 0 percent or less is no cap.

    A node with GPUs gets no CPU cap: capping the CPU that feeds a GPU costs more than it saves.
    """
    is_eco = profile == "eco"
    if has_gpu:
        pct = shares.gpu_eco_pct if is_eco else shares.gpu_performance_pct
        return {"gpu": {"powerCap": {"scope": "perGpu", "capPctOfMax": pct}}} if pct > 0 else {}
    pct = shares.cpu_eco_pct if is_eco else shares.cpu_performance_pct
    return {"cpu": {"packagePowerCapPctOfMax": pct}} if pct > 0 else {}
