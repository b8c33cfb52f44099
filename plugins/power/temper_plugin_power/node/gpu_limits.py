"""The limits of GPUs as values that are recorded before a change, and given back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from temper_core import MachineError
from temper_plugin_power.node.nvml import Gpu, Library, Nvml, load_library

SUFFIX = "/power_limit_mw"


class GpuLimits:
    """The limits that NVML holds, in milliwatts. Implements ``ValueHolder``."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml

    def read(self, path: str) -> str | None:
        """Return the limit of a GPU, None if the machine has no such GPU any more.

        Raises MachineError if NVML has no answer.
        """
        gpu = self._gpu(path)
        return None if gpu is None else str(self._nvml.limit_mw(gpu))

    def write(self, path: str, value: str) -> None:
        """Set the limit of a GPU. Raises MachineError if NVML refuses, or does not know it."""
        gpu = self._gpu(path)
        if gpu is None:
            raise MachineError(f"{path}: NVML names no such GPU")
        if not (value.isascii() and value.isdigit()):
            raise MachineError(f"{path}: {value!r} is no limit in milliwatts")
        self._nvml.set_mw(gpu, int(value))

    def _gpu(self, path: str) -> Gpu | None:
        for gpu in self._nvml.gpus:
            if limit_path(gpu) == path:
                return gpu
        if self._nvml.has_unread:
            raise MachineError(f"{path}: NVML cannot read every GPU of this machine")
        return None


def limit_path(gpu: Gpu) -> str:
    """Return the name of a GPU's limit, which outlasts reboots."""
    return f"{gpu.uuid}{SUFFIX}"


@contextmanager
def opened_limits(load: Callable[[], Library] = load_library) -> Iterator[GpuLimits]:
    """Connect to NVML, and disconnect at the end. Raises MachineError where that fails."""
    nvml = Nvml(load())
    nvml.open()
    try:
        yield GpuLimits(nvml)
    finally:
        nvml.close()
