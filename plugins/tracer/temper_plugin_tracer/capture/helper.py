"""The helper process of a capture: records, encodes and publishes the trace.

The agent ends this process with itself. Everything that it has on disk before the trace is whole
has no name, and the kernel removes the BPF object with it, so nothing is left by a SIGKILL.
"""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from temper_core import TemperError, fit, rfc3339
from temper_plugin_tracer.capture.backends import open_recorder
from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.encoding import Encoding, Outcome, encode
from temper_plugin_tracer.capture.node_reading import NodeNotes, read_notes
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import Recorded, free_bytes, record
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.store import END, NODE, SUMMARY, TRACE, Store
from temper_plugin_tracer.capture.trace_context import TraceContext
from temper_plugin_tracer.capture.unlinked_file import UnlinkedFile

MIB = 1024 * 1024
NOTHING_MORE: Mapping[str, Any] = {}


@frozen
class Order:
    """The order of the agent.

    Attributes:
        id: The id of the capture.
        directory: The instrument's directory.
        cores: CPU and core of each online CPU.

    """

    id: str
    directory: str
    node: str
    by: str
    backend: str
    bounds: Bounds
    selection: Selection
    cores: tuple[tuple[int, ...], ...] = ()


def capture(argument: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Capture a trace. Return its summary, or ``error`` with the reason why there is none."""
    order = fit(argument, Order, source="order of a capture")
    try:
        return _capture(order)
    except TemperError as error:
        return {"error": " ".join(error.lines)}
    except OSError as error:
        return {"error": f"{error.filename or order.directory}: {error.strerror}"}


def _capture(order: Order) -> dict[str, Any]:
    store = Store(Path(order.directory))
    began_at = time.time()
    with (
        UnlinkedFile.create(store.directory) as trace,
        UnlinkedFile.create(store.directory) as raw_file,
    ):
        raw_file.forget_name()
        refuse_full_disk(raw_file.descriptor, order.bounds)
        trace.reserve(order.bounds.bytes)  # a disk that fills meanwhile does not matter then
        raw = RawFile(raw_file.descriptor)
        with open_recorder(order.backend, order.selection) as recorder:
            work_promptly()
            recorded = record(
                recorder, raw, raw_file.descriptor, order.bounds, lambda: _asked_ending(order)
            )
            step_back()
            backend = recorder.name
        told = context_of(order, backend)
        return publish(store, trace, Encoding(raw, recorded, told), began_at)


def publish(
    store: Store,
    trace: UnlinkedFile,
    encoding: Encoding,
    began_at: float,
    more: Mapping[str, Any] = NOTHING_MORE,
) -> dict[str, Any]:
    """Encode a recording into *trace*, give that its name, and return the summary with *more*.

    Raises OSError.
    """
    told = encoding.told
    outcome = encode(encoding, trace.descriptor)
    os.ftruncate(trace.descriptor, outcome.bytes)
    summary = {**_summary(told, encoding.recorded, outcome, began_at), **more}
    removed = store.make_room(outcome.bytes)
    with UnlinkedFile.create(store.directory) as note:
        os.write(note.descriptor, json.dumps(summary).encode())
        note.publish(f"{told.id}{SUMMARY}")
    trace.publish(f"{told.id}{TRACE}")
    return {**summary, "removed": removed}


def _summary(
    told: TraceContext, recorded: Recorded, outcome: Outcome, began_at: float
) -> dict[str, Any]:
    return {
        "id": told.id,
        "by": told.by,
        "node": told.node,
        "backend": told.backend,
        "selection": told.selection.label or "the whole node",
        "began_at": rfc3339(began_at),
        "seconds": round(recorded.seconds, 3),
        "ended_by": str(outcome.ending),
        "asked": asdict(told.bounds),
        "events": outcome.events,
        "bytes": outcome.bytes,
        "threads": outcome.threads,
        "lost": recorded.losses.count,
        "lost_by_cpu": {str(cpu): lost for cpu, lost in recorded.losses.by_cpu.items()},
        "lost_names": recorded.losses.names,
    }


def _asked_ending(order: Order) -> Ending | None:
    is_asked = Path(order.directory, f"{order.id}{END}").exists()
    return Ending.ASKED if is_asked else None


def context_of(order: Order, backend: str) -> TraceContext:
    """Return the facts of the capture and of the node for the trace."""
    return TraceContext(
        order.id,
        order.node,
        order.by,
        backend,
        order.selection,
        order.bounds,
        order.cores,
        _notes(order),
    )


def _notes(order: Order) -> NodeNotes:
    with suppress(OSError, ValueError):
        return read_notes(Path(order.directory, f"{order.id}{NODE}").read_bytes())
    return NodeNotes()


def refuse_full_disk(descriptor: int, bounds: Bounds) -> None:
    """Raise TemperError if the file system has no room for a trace within *bounds*."""
    free = free_bytes(descriptor)
    if free < bounds.free_bytes + bounds.bytes:
        raise _NoRoomError(
            f"the file system of the traces has {free // MIB} MiB free: a capture needs its "
            f"{bounds.bytes // MIB} MiB and leaves {bounds.free_bytes // MIB} MiB to others"
        )


class _NoRoomError(TemperError):
    """There is no room for a trace."""


def work_promptly() -> None:
    """Drain at the usual priority. At a helper's priority a busy node would lose events."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def step_back() -> None:
    """Encode at the priority of a helper."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 19)


__all__ = [
    "Order",
    "capture",
    "context_of",
    "publish",
    "refuse_full_disk",
    "step_back",
    "work_promptly",
]
