"""Sets the limits of GPUs by NVML, and gives them back."""

import json
import os
from collections.abc import Iterator, Mapping

from attrs import asdict, field, frozen
from attrs.validators import ge, instance_of

from temper_core import (
    DocumentError,
    MachineError,
    StateDirectory,
    fit,
    parse_json,
    read_text,
)
from temper_plugin_power.node.actions import AS_LOW, NOT_ASKED, Action, LastActions
from temper_plugin_power.node.capping import MOST_DIFFERENCE
from temper_plugin_power.node.nvml import Gpu, Nvml
from temper_plugin_power.node.spec_file import CapSpec

RECORD = "gpu-limits.json"
LARGEST_BYTES = 64 * 1024
MILLI = 1000


@frozen
class ChangedLimit:
    """The limit of a GPU before ours, and ours as it was read back. 0 is not read back yet."""

    uuid: str = field(validator=instance_of(str))
    before_mw: int = field(validator=[instance_of(int), ge(0)])
    now_mw: int = field(default=0, validator=[instance_of(int), ge(0)])


@frozen
class LimitRecord:
    """The limits that are to be given back."""

    limits: tuple[ChangedLimit, ...] = ()


class GpuCapping:
    """The limits of all GPUs, recorded in *state* before they are changed.

    Only one thread may use it.
    """

    def __init__(self, nvml: Nvml, state: StateDirectory) -> None:
        self._nvml = nvml
        self._state = state
        self._gpus: tuple[Gpu, ...] = ()
        self._changed: dict[str, ChangedLimit] = {}
        self._asked_mw: dict[str, int] = {}
        self._last = LastActions()

    @property
    def count(self) -> int:
        """How many GPUs can be capped."""
        return len(self._gpus)

    @property
    def caps_watts(self) -> Mapping[str, float]:
        """The limits of ours, by GPU."""
        ours = ((gpu.name, self._changed.get(gpu.uuid)) for gpu in self._gpus)
        return {name: limit.now_mw / MILLI for name, limit in ours if limit and limit.now_mw}

    @property
    def last(self) -> Mapping[str, Action]:
        """The last action of each GPU."""
        return self._last.by_package()

    def open(self) -> list[Action]:
        """Find the GPUs, and give back what an agent that crashed has left."""
        self._gpus = self._nvml.open()
        self._changed = {each.uuid: each for each in self._recorded()}
        return self.lift("left by an agent that crashed")

    def apply(self, spec: CapSpec) -> list[Action]:
        """Set the limits that *spec* asks for. Return what is new since the last call."""
        return [action for gpu in self._gpus for action in self._last.new(self._set(gpu, spec))]

    def lift(self, reason: str) -> list[Action]:
        """Give back every limit. Return an action for each that was changed."""
        changed = [gpu for gpu in self._gpus if gpu.uuid in self._changed]
        return [each for gpu in changed for each in self._last.new(self._give_back(gpu, reason))]

    def close(self, reason: str) -> list[Action]:
        """Give back every limit, and disconnect."""
        actions = self.lift(reason)
        self._nvml.close()
        return actions

    def _set(self, gpu: Gpu, spec: CapSpec) -> Iterator[Action]:
        try:
            current_mw = self._nvml.limit_mw(gpu)
            known = self._changed.get(gpu.uuid)
            before_mw = current_mw if known is None else known.before_mw
            asked_mw, note = gpu_limit(spec, gpu, before_mw)
            if asked_mw is None:
                if known is not None:
                    yield from self._give_back(gpu, note)
            elif known is None or (self._asked_mw.get(gpu.uuid), known.now_mw) != (
                asked_mw,
                current_mw,
            ):
                yield self._change(gpu, asked_mw, before_mw, note)
        except MachineError as error:
            yield Action("error", gpu.name, str(error))

    def _change(self, gpu: Gpu, asked_mw: int, before_mw: int, note: str) -> Action:
        self._changed[gpu.uuid] = ChangedLimit(gpu.uuid, before_mw)
        self._write()
        now_mw = self._nvml.set_mw(gpu, asked_mw)
        self._changed[gpu.uuid] = ChangedLimit(gpu.uuid, before_mw, now_mw)
        self._asked_mw[gpu.uuid] = asked_mw
        self._write()
        is_set = abs(now_mw - asked_mw) <= MOST_DIFFERENCE * asked_mw
        said = f"asked {asked_mw / MILLI:.1f} W, read back {now_mw / MILLI:.1f} W"
        return Action(
            "applied" if is_set else "error", gpu.name, ", ".join(filter(None, (said, note)))
        )

    def _give_back(self, gpu: Gpu, reason: str) -> Iterator[Action]:
        changed = self._changed[gpu.uuid]
        try:
            is_ours = self._nvml.limit_mw(gpu) == changed.now_mw or not changed.now_mw
            if is_ours:
                self._nvml.set_mw(gpu, changed.before_mw)
            del self._changed[gpu.uuid]
            self._write()
        except MachineError as error:
            yield Action("error", gpu.name, str(error))
            return
        word = "the former limit" if is_ours else "left as another process has set it"
        yield Action("restored", gpu.name, f"{word}: {reason}")

    def _write(self) -> None:
        record = LimitRecord(tuple(self._changed.values()))
        self._state.write(RECORD, json.dumps(asdict(record)).encode())

    def _recorded(self) -> tuple[ChangedLimit, ...]:
        """Return the record of an earlier process. Raises MachineError if it cannot be read."""
        path = self._state.path / RECORD
        if not os.path.lexists(path):
            return ()
        try:
            text = read_text(path, largest_bytes=LARGEST_BYTES)
            return fit(parse_json(text, source=str(path)), LimitRecord, source=str(path)).limits
        except DocumentError as error:
            raise MachineError(error.lines[0]) from error


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
