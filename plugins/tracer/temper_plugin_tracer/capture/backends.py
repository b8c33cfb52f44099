"""Opens the recorder of a capture: the first way that works on this node."""

from collections.abc import Callable, Mapping
from typing import Protocol, Self

from attrs import field, frozen

from temper_core import BpfError, TemperError, explain_bpf_error
from temper_plugin_tracer.capture.backend_names import names_to_try
from temper_plugin_tracer.capture.bcc.recorder import BccRecorder
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.recording import Recorder
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.tracefs.recorder import TracefsRecorder


class OpenRecorder(Recorder, Protocol):
    """A recorder with what it holds in the kernel, which its end as a context gives back."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


OPENERS: Mapping[str, Callable[[Selection], OpenRecorder]] = {
    "bpf": BpfRecorder.open,
    "tracefs": TracefsRecorder.open,
    "bcc": BccRecorder.open,
}
"""The backends that give events. Others give a whole trace."""


@frozen
class Opened:
    """The recorder that could be opened, None without one, and why others could not be."""

    recorder: OpenRecorder | None
    refused: Mapping[str, str] = field(factory=dict)


def open_recorder(backend: str, selection: Selection) -> Opened:
    """Open the recorder *backend*, or with ``auto`` the first that can be opened."""
    refused: dict[str, str] = {}
    for name in names_to_try(backend):
        if name not in OPENERS:
            continue
        try:
            return Opened(OPENERS[name](selection), refused)
        except (TemperError, OSError) as error:
            refused[name] = reason_of(error)
    return Opened(None, refused)


def reason_of(error: Exception) -> str:
    """Return why a recorder could not be opened, with the remedy if one is known."""
    if isinstance(error, BpfError):
        explanation = explain_bpf_error(error)
        return ", ".join(filter(None, [explanation.reason, explanation.remedy]))
    return str(error)
