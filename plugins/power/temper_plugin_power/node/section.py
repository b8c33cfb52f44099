"""The section of the node's power in ``/observe``."""

from collections.abc import Mapping
from typing import Any

from attrs import asdict

from temper_plugin_power.node.control import Control
from temper_plugin_power.node.families import NodePower
from temper_plugin_power.node.zones import Powercap

DIGITS = 3


def power_section(
    seen: NodePower,
    powercap: Powercap,
    gpu_problem: str,
    control: Control,
    *,
    message: str,
    actuates: bool,
) -> Mapping[str, Any]:
    """Return what was read, what was set, and why something is missing.

    *message* is why no cap is set, or none of GPUs is changed.
    """
    return {
        "backends": list(seen.backends),
        "not_here": {
            name: why
            for name, why in (("rapl", powercap.why_none), ("host-nvidia", gpu_problem))
            if why
        },
        "package_watts": _rounded(seen.power.package_watts),
        "dram_watts": _rounded(seen.power.dram_watts),
        "packages": [_plain(asdict(package)) for package in seen.power.packages],
        "gpus": [_plain(asdict(gpu)) for gpu in seen.gpus],
        "tier_watts": {tier: round(watts, DIGITS) for tier, watts in seen.tiers.items()},
        "tier_watts_by": "share of CPU time",
        "caps": {
            "actuate": actuates,
            "message": message,
            "watts": _plain(control.capping.caps_watts),
            "last": {
                name: {"action": action.kind, "detail": action.detail}
                for name, action in control.capping.last.items()
            },
        },
    }


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _rounded(value) for key, value in table.items()}


def _rounded(value: Any) -> Any:  # noqa: ANN401 - JSON
    return round(value, DIGITS) if isinstance(value, float) else value
