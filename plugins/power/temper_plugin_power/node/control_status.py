"""The status of a NodeTwin's caps on its node: ``status.controlStatus``."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from temper_plugin_power.node.actions import AS_LOW, NOT_ASKED, Action
from temper_plugin_power.node.control import Control

UPDATED_AT = "updatedAt"
LONGEST_MESSAGE = 256
NO_PACKAGES = "there is no package"
WORST_FIRST = ("error", "blocked")


@frozen
class Device:
    """The devices of one backend, with the last action on each.

    *why_none* is the reason if none of them can be capped.
    """

    backend: str
    why_none: str
    caps_watts: Mapping[str, float] = field(factory=dict)
    last: Mapping[str, Action] = field(factory=dict)


@frozen
class ControlStatus:
    """The parts ``cpu`` and ``gpu``, each with ``backend``, ``result`` and ``message``."""

    parts: Mapping[str, Mapping[str, str]]

    def equals(self, written: object) -> bool:
        """Return whether *written*, the status in the cluster, has the same parts at any time."""
        if not isinstance(written, Mapping):
            return False
        return {part: _without_time(written.get(part)) for part in self.parts} == self.parts


def control_status(control: Control, why_none: str, cpus: Device, gpus: Device) -> ControlStatus:
    """Return the status of the last turn. *why_none* is the reason if no NodeTwin is followed.

    ``applied``: a cap is in force. ``blocked``: a cap is asked for and may not or cannot be set
    here. ``error``: a write failed. ``none``: no cap is asked for.
    """
    spec = control.spec
    parts = {
        "cpu": (cpus, spec is not None and spec.asks_for_cpu),
        "gpu": (gpus, spec is not None and spec.asks_for_gpu),
    }
    return ControlStatus(
        {
            part: _part(device, *_result(device, why_none, is_asked, control.is_off))
            for part, (device, is_asked) in parts.items()
        }
    )


def _part(device: Device, result: str, message: str) -> Mapping[str, str]:
    backend = "none" if device.why_none else device.backend
    return {"backend": backend, "result": result, "message": message[:LONGEST_MESSAGE]}


def _result(device: Device, why_none: str, is_asked: bool, is_off: bool) -> tuple[str, str]:
    if why_none:
        return "none" if is_off else "blocked", why_none
    if not is_asked:
        return "none", NOT_ASKED
    if device.why_none:
        return "blocked", device.why_none
    last = device.last
    for kind in WORST_FIRST:
        if said := [each for each in last.values() if each.kind == kind]:
            return kind, _joined(said)
    said = [last[name] for name in device.caps_watts if name in last]
    if not said:
        return "none", AS_LOW
    return "applied", _joined(said)


def _joined(actions: list[Action]) -> str:
    return "; ".join(f"{each.package}: {each.detail}" for each in actions)


def _without_time(part: Any) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(part, Mapping):
        return part
    return {key: value for key, value in part.items() if key != UPDATED_AT}
