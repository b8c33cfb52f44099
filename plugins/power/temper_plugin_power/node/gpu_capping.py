"""Sets the limits of GPUs by NVML, and gives them back."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from attrs import frozen

from temper_core import DeviceValues, MachineError, StateDirectory
from temper_plugin_power.node.actions import AS_LOW, NOT_ASKED, Action, LastActions, restored
from temper_plugin_power.node.capping import MOST_DIFFERENCE
from temper_plugin_power.node.gpu_limits import GpuLimits, limit_path
from temper_plugin_power.node.nvml import Gpu, Nvml
from temper_plugin_power.node.record_disk import NoLongerAskedError
from temper_plugin_power.node.spec_file import CapSpec

MILLI = 1000


@frozen
class InForce:
    """A limit of ours, in milliwatts."""

    asked_mw: int
    now_mw: int
    """As it was read back."""


class GpuCapping:
    """The limits of all GPUs, recorded in *state* before they are changed.

    Only one thread may use it.
    """

    def __init__(self, nvml: Nvml, state: StateDirectory) -> None:
        self._nvml = nvml
        self._values = DeviceValues(state, GpuLimits(nvml))
        self._in_force: dict[str, InForce] = {}
        self._last = LastActions()

    @property
    def count(self) -> int:
        """How many GPUs can be capped."""
        return len(self._nvml.gpus)

    @property
    def caps_watts(self) -> Mapping[str, float]:
        """The limits of ours, by GPU."""
        ours = ((gpu.name, self._in_force.get(gpu.uuid)) for gpu in self._nvml.gpus)
        return {name: limit.now_mw / MILLI for name, limit in ours if limit is not None}

    @property
    def last(self) -> Mapping[str, Action]:
        """The last action of each GPU."""
        return self._last.by_package()

    def open(self) -> None:
        """Find the GPUs."""
        self._nvml.open()

    def recall(self) -> None:
        """Read what an agent that crashed has left. ``lift`` gives it back."""
        self._values.recall()

    def apply(self, spec: CapSpec) -> list[Action]:
        """Set the limits that *spec* asks for. Return what is new since the last call."""
        return [
            action for gpu in self._nvml.gpus for action in self._last.new(self._set(gpu, spec))
        ]

    def lift(self, reason: str) -> list[Action]:
        """Give back every limit. Return an action for each that was changed.

        Like every return of a limit it waits for no disk. ``renew_record`` then writes the record.
        """
        recorded = self._values.recorded
        changed = [gpu for gpu in self._nvml.gpus if limit_path(gpu) in recorded]
        return list(self._last.new(self._give_back(gpu, reason) for gpu in changed))

    def renew_record(self) -> None:
        """Take the limits that are back from the record, if the disk lets it.

        They are never written again. The next cap names a disk that takes nothing.
        """
        with suppress(MachineError):
            self._values.renew_record()

    def close(self, reason: str) -> list[Action]:
        """Give back every limit, and disconnect.

        All limits are back before the record is written, for the disk may hang.
        """
        actions = self.lift(reason)
        if self._values.recorded:  # those of GPUs that are gone
            self._values.give_back_all()
        self.renew_record()
        self._nvml.close()
        return actions

    def _set(self, gpu: Gpu, spec: CapSpec) -> Iterator[Action]:
        try:
            current_mw = self._nvml.limit_mw(gpu)
            former = self._values.value_before(limit_path(gpu))
            before_mw = current_mw if former is None else int(former)
            asked_mw, note = gpu_limit(spec, gpu, before_mw)
            if asked_mw is None:
                if former is not None:
                    yield self._give_back(gpu, note)
            elif self._in_force.get(gpu.uuid) != InForce(asked_mw, current_mw):
                yield self._change(gpu, asked_mw, note)
        except NoLongerAskedError:
            return  # the limits are lifted next
        except MachineError as error:
            self._in_force.pop(gpu.uuid, None)
            yield Action("error", gpu.name, str(error))

    def _change(self, gpu: Gpu, asked_mw: int, note: str) -> Action:
        now_mw = int(self._values.set(limit_path(gpu), str(asked_mw)))
        self._in_force[gpu.uuid] = InForce(asked_mw, now_mw)
        is_set = abs(now_mw - asked_mw) <= MOST_DIFFERENCE * asked_mw
        said = f"asked {asked_mw / MILLI:.1f} W, read back {now_mw / MILLI:.1f} W"
        return Action(
            "applied" if is_set else "error", gpu.name, ", ".join(filter(None, (said, note)))
        )

    def _give_back(self, gpu: Gpu, reason: str) -> Action:
        try:
            is_back = self._values.give_back_unrecorded(limit_path(gpu))
        except MachineError as error:
            return Action("error", gpu.name, str(error))
        self._in_force.pop(gpu.uuid, None)
        return restored(gpu.name, reason, is_back=is_back)


def gpu_limit(spec: CapSpec, gpu: Gpu, before_mw: int) -> tuple[int | None, str]:
    """Return the limit of a GPU in milliwatts, None for none of ours, and why it differs.

    Watts win over percent of the greatest limit. A cap is within the bounds of the device, and
    never raises a limit.
    """
    if not spec.asks_for_gpu:
        return None, NOT_ASKED
    share = (spec.gpu_percent or 0) / 100
    asked = spec.gpu_watts * MILLI if spec.gpu_watts is not None else gpu.most_mw * share
    limit_mw = round(min(max(asked, gpu.least_mw), gpu.most_mw))
    if limit_mw >= before_mw:
        return None, AS_LOW
    note = "raised to the least limit of the GPU" if asked < gpu.least_mw else ""
    return limit_mw, note
