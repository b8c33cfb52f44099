"""NVIDIA's management library: the limits of GPUs, by the functions of the module pynvml."""

# ruff: noqa: N802 - the names of pynvml

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

from attrs import field, frozen

from temper_core import MachineError

MODULE = "pynvml"
NOT_INSTALLED = "pynvml is not installed: install temper-plugin-power[nvml]"
MOST_GPUS = 64


class Library(Protocol):
    """The part of pynvml that is used. Limits are in milliwatts."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None:
        """Load the library, and connect to the driver."""

    def nvmlShutdown(self) -> None:
        """Disconnect."""

    def nvmlDeviceGetCount(self) -> int:
        """Return the number of GPUs."""
        ...

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: ANN401 - a C pointer
        """Return what the other functions take."""
        ...

    def nvmlDeviceGetUUID(self, handle: Any) -> str:  # noqa: ANN401 - the same
        """Return the name that a GPU keeps."""
        ...

    def nvmlDeviceGetPowerManagementLimit(self, handle: Any) -> int:  # noqa: ANN401 - the same
        """Return the limit."""
        ...

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle: Any) -> list[int]:  # noqa: ANN401 - the same
        """Return the least and the greatest limit."""
        ...

    def nvmlDeviceSetPowerManagementLimit(self, handle: Any, limit: int) -> None:  # noqa: ANN401 - the same
        """Set the limit. Only root may."""


@frozen
class Gpu:
    """A GPU with the bounds of its limit, in milliwatts."""

    name: str
    """``gpu-0`` by its place."""
    uuid: str
    least_mw: int
    most_mw: int
    handle: Any = field(eq=False, repr=False)


class Nvml:
    """The GPUs of this machine. Every failure is a MachineError."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.gpus: tuple[Gpu, ...] = ()
        """Those whose limits can be set, once it is open."""
        self.has_unread = False
        """Whether there are others, whose limits cannot be set or were not read."""

    def open(self) -> None:
        """Connect, and find the GPUs."""
        with self._explained("nvmlInit"):
            self._library.nvmlInit()
        with self._explained("nvmlDeviceGetCount"):
            count = self._library.nvmlDeviceGetCount()
        self.gpus = tuple(filter(None, map(self._gpu, range(min(count, MOST_GPUS)))))
        self.has_unread = len(self.gpus) < count

    def limit_mw(self, gpu: Gpu) -> int:
        """Return the limit of a GPU."""
        with self._explained(gpu.name):
            return self._library.nvmlDeviceGetPowerManagementLimit(gpu.handle)

    def set_mw(self, gpu: Gpu, limit_mw: int) -> int:
        """Set the limit of a GPU. Return it as it is read back."""
        with self._explained(gpu.name):
            self._library.nvmlDeviceSetPowerManagementLimit(gpu.handle, limit_mw)
        return self.limit_mw(gpu)

    def close(self) -> None:
        """Disconnect."""
        with self._explained("nvmlShutdown"):
            self._library.nvmlShutdown()

    def _gpu(self, index: int) -> Gpu | None:
        """Return a GPU, None if its limit cannot be set: some have none."""
        library = self._library
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
            least, most = library.nvmlDeviceGetPowerManagementLimitConstraints(handle)
            return Gpu(f"gpu-{index}", library.nvmlDeviceGetUUID(handle), least, most, handle)
        except library.NVMLError:
            return None

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._library.NVMLError as error:
            raise MachineError(f"{what}: NVML: {error}") from error
        except Exception as error:  # of one GPU: the limits of the others are to be given back
            raise MachineError(f"{what}: NVML failed: {type(error).__name__}: {error}") from error


def load_library() -> Library:
    """Return pynvml. Raises MachineError where it is not installed."""
    try:
        return cast("Library", importlib.import_module(MODULE))
    except ImportError as error:
        raise MachineError(NOT_INSTALLED) from error
