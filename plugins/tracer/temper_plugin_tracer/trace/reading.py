"""Opens a trace by its content: Perfetto's format or ftrace text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from temper_core import InputError, UnpackedFile, open_file
from temper_plugin_tracer.trace.ftrace_text import (
    GZIP_MAGIC,
    FtraceText,
    looks_like_ftrace_text,
)
from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread

__all__ = ["Trace", "open_trace"]

HEAD_BYTES = 1 << 16
PERFETTO = b"\x0a"
"""Tag of the field ``packet`` of the message ``Trace``, with which each trace begins."""


class Trace(Protocol):
    """A trace that can be read more than once."""

    @property
    def threads(self) -> Sequence[TracedThread]:
        """The threads that the trace names. Complete when all blocks have been read."""

    @property
    def machine(self) -> TracedMachine | None:
        """The machine, None if the trace does not describe it."""

    @property
    def facts(self) -> CaptureFacts | None:
        """How it was captured, None for traces of others."""

    @property
    def cut(self) -> str:
        """The reason why the file is cut, empty if it is whole."""

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Read the events of all CPUs in blocks, in the order of time."""


def open_trace(path: Path) -> Trace:
    """Open the trace at *path*.

    Raises:
        InputError: if the file cannot be read, or is no trace.

    """
    head = _head(path)
    if looks_like_ftrace_text(head):
        return FtraceText(path)
    if head.startswith(PERFETTO):
        return PerfettoTrace(path)
    if not head:
        raise InputError(f"{path}: the file is empty")
    raise InputError(f"{path}: neither a Perfetto trace nor ftrace text")


def _head(path: Path) -> bytes:
    import zlib  # noqa: PLC0415 - for packed traces

    try:
        with open_file(path) as file:
            head = file.read(HEAD_BYTES)
            if not head.startswith(GZIP_MAGIC):
                return head
            file.seek(0)
            return UnpackedFile(file).read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
