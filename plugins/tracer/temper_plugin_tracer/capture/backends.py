"""Opens the recorder of a capture: the first way that works on this node."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from temper_core import BpfError, MachineError, explain_bpf_error
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.recording import Recorder
from temper_plugin_tracer.capture.selection import Selection

Opener = Callable[[Selection], AbstractContextManager[Recorder]]
OPENERS: dict[str, Opener] = {"bpf": BpfRecorder.open}
"""By the order of trying."""


@contextmanager
def open_recorder(backend: str, selection: Selection) -> Iterator[Recorder]:
    """Open the recorder *backend*, or with ``auto`` the first that can be opened.

    Raises MachineError with the reason of each if none can.
    """
    names = tuple(OPENERS) if backend == "auto" else (backend,)
    reasons = []
    for name in names:
        try:
            opened = OPENERS[name](selection)
        except (MachineError, OSError) as error:
            reasons.append(f"{name}: {reason_of(error)}")
            continue
        with opened as recorder:
            yield recorder
        return
    raise MachineError(f"no way to record works here: {'; '.join(reasons)}")


def reason_of(error: Exception) -> str:
    """Return why a recorder could not be opened, with the remedy if one is known."""
    if isinstance(error, BpfError):
        explanation = explain_bpf_error(error)
        return ", ".join(filter(None, [explanation.reason, explanation.remedy]))
    return str(error)
