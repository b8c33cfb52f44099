"""What the node's agent did with the caps of its NodeTwin: ``status.controlStatus``."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_plugin_power.node.capping import Action
from temper_plugin_power.node.control import Control

UPDATED_AT = "updatedAt"
LONGEST_MESSAGE = 256
NO_GPU_CAPS = "this agent sets no cap of GPUs"
WORST_FIRST = ("error", "blocked")


@frozen
class ControlStatus:
    """The parts ``cpu`` and ``gpu``, each with ``backend``, ``result`` and ``message``."""

    parts: Mapping[str, Mapping[str, str]]

    def is_told_by(self, written: object) -> bool:
        """Return whether the status in the cluster says the same, at any time."""
        if not isinstance(written, Mapping):
            return False
        return {part: _without_time(written.get(part)) for part in self.parts} == self.parts


def control_status(
    control: Control, why_none: str, has_packages: bool, has_gpus: bool
) -> ControlStatus:
    """Return the status of the last turn. *why_none* is why nothing is followed, empty if it is.

    ``applied``: a cap is in force. ``blocked``: a cap is asked for and may not or cannot be set
    here. ``error``: a write failed. ``none``: no cap is asked for.
    """
    gpu = {"backend": "none", "result": "none", "message": NO_GPU_CAPS if has_gpus else "no GPU"}
    result, message = _result(control, why_none)
    backend = "rapl" if has_packages else "none"
    cpu = {"backend": backend, "result": result, "message": message[:LONGEST_MESSAGE]}
    return ControlStatus({"cpu": cpu, "gpu": gpu})


def _result(control: Control, why_none: str) -> tuple[str, str]:
    if why_none:
        return "none" if control.is_off else "blocked", why_none
    if control.spec is None or not control.spec.asks_for_cpu:
        return "none", "no cap is asked for"
    last = control.capping.last
    for kind in WORST_FIRST:
        if said := [each for each in last.values() if each.kind == kind]:
            return kind, _joined(said)
    said = [last[name] for name in control.capping.caps_watts if name in last]
    if not said:
        return "none", "the limit without a cap is as low"
    return "applied", _joined(said)


def _joined(actions: list[Action]) -> str:
    return "; ".join(f"{each.package}: {each.detail}" for each in actions)


def _without_time(part: Any) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(part, Mapping):
        return part
    return {key: value for key, value in part.items() if key != UPDATED_AT}
