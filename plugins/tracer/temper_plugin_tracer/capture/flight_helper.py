"""The helper process of the flight recorder: keeps the newest events, and writes them when asked.

While it records it has nothing on disk but a note of its state. The agent ends this process with
itself, and the kernel removes the BPF object with it.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core import TemperError, fit
from temper_plugin_tracer.capture.backends import reason_of
from temper_plugin_tracer.capture.bounds import Ending
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.capture_helper import (
    Order,
    context_of,
    publish,
    refuse_full_disk,
    step_back,
    work_promptly,
)
from temper_plugin_tracer.capture.drained import Drained
from temper_plugin_tracer.capture.encoding import Encoding
from temper_plugin_tracer.capture.flight_recording import FlightRecording
from temper_plugin_tracer.capture.flight_request import KIND
from temper_plugin_tracer.capture.flight_status import FlightStatus, write_status
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import Recorded
from temper_plugin_tracer.capture.store import END, Store
from temper_plugin_tracer.capture.unlinked_file import UnlinkedFile

LARGEST_WISH = 4096


@frozen
class FlightOrder(Order):
    """The order of the agent.

    Attributes:
        duration_s: How long it records.
        cpu_ratio: Share of one core beyond which it ends.

    """

    duration_s: float = 3_600.0
    cpu_ratio: float = 0.05


def record(argument: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Record until the trace is asked for, and return its summary.

    Returns ``unkept`` with the reason if it ended without a trace, ``error`` if it failed.
    """
    order = fit(argument, FlightOrder, source="order of the flight recorder")
    try:
        return _record(order)
    except TemperError as error:
        return {"error": " ".join(error.lines)}
    except OSError as error:
        return {"error": f"{error.filename or order.directory}: {error.strerror}"}


def _record(order: FlightOrder) -> dict[str, Any]:
    _refuse_full_disk(order)
    with _opened(order) as recorder:
        recording = FlightRecording(recorder, order.bounds.seconds, lambda told: _tell(order, told))
        work_promptly()
        ending = recording.run(order.duration_s, order.cpu_ratio, lambda: end_order_of(order)[0])
        step_back()
        if ending in {Ending.SECONDS, Ending.BUDGET}:
            return {"unkept": _why(ending, order, recording.status)}
        newest, recorded = recording.newest(order.bounds, ending)
    return _write(order, newest, recorded, recorder.name)


def _write(order: FlightOrder, newest: Drained, recorded: Recorded, backend: str) -> dict[str, Any]:
    store = Store(Path(order.directory))
    began_at = time.time() - recorded.seconds
    with (
        UnlinkedFile.create(store.directory) as trace,
        UnlinkedFile.create(store.directory) as raw_file,
    ):
        raw_file.forget_name()
        refuse_full_disk(raw_file.descriptor, order.bounds)
        trace.reserve(order.bounds.bytes)
        raw = RawFile(raw_file.descriptor)
        raw.write(newest)
        encoding = Encoding(raw, recorded, context_of(order, backend))
        more = {"kind": KIND, "cause": end_order_of(order)[1]}
        return publish(store, trace, encoding, began_at, more)


def end_order_of(order: Order) -> tuple[Ending | None, str]:
    """Return what the agent wants this process to end by, and why."""
    try:
        with Path(order.directory, f"{order.id}{END}").open("rb") as file:
            ending, _, cause = file.read(LARGEST_WISH).decode(errors="replace").partition("\n")
    except OSError:
        return None, ""
    with suppress(ValueError):
        return Ending(ending), cause
    return Ending.ASKED, cause


def _opened(order: FlightOrder) -> BpfRecorder:
    try:
        return BpfRecorder.open(order.selection, wraps=True)
    except (TemperError, OSError) as error:
        reason = reason_of(error)
        raise _CannotRecordError(f"the flight recorder needs the backend bpf: {reason}") from error


def _refuse_full_disk(order: FlightOrder) -> None:
    with UnlinkedFile.create(Path(order.directory)) as probe:
        refuse_full_disk(probe.descriptor, order.bounds)


def _tell(order: FlightOrder, status: FlightStatus) -> None:
    write_status(Path(order.directory), order.id, status)


def _why(ending: Ending, order: FlightOrder, status: FlightStatus) -> str:
    if ending is Ending.BUDGET:
        return (
            f"it took {status.cpu_ratio:.2%} of a core, more than the {order.cpu_ratio:.2%} of its "
            "budget"
        )
    return f"its {order.duration_s:g} s are over"


class _CannotRecordError(TemperError):
    """The BPF recorder cannot be used here."""


__all__ = ["FlightOrder", "record"]
