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

from temper_core import MachineError, TemperError, fit, rfc3339
from temper_plugin_tracer.capture.backend_names import names_to_try, reasons_in_words
from temper_plugin_tracer.capture.backends import open_recorder
from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.drained import Losses
from temper_plugin_tracer.capture.encoding import Encoding, Outcome, encode
from temper_plugin_tracer.capture.node_reading import NodeNotes, read_notes
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import Recorded, free_bytes, record
from temper_plugin_tracer.capture.selection import WHOLE_NODE, Selection
from temper_plugin_tracer.capture.store import END, NODE, SUMMARY, TRACE, Store
from temper_plugin_tracer.capture.trace_context import TraceContext
from temper_plugin_tracer.capture.unlinked_file import UnlinkedFile
from temper_plugin_tracer.capture.whole_node.recording import record_whole_node

MIB = 1024 * 1024
PERFETTO = "perfetto"
LOWEST = 19
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
    with (
        UnlinkedFile.create(store.directory) as trace,
        UnlinkedFile.create(store.directory) as raw_file,
    ):
        raw_file.forget_name()
        refuse_full_disk(raw_file.descriptor, order.bounds)
        trace.reserve(order.bounds.bytes)  # a disk that fills meanwhile does not matter then
        raw = RawFile(raw_file.descriptor)
        opened = open_recorder(order.backend, order.selection)
        if opened.recorder is None:
            return _whole_trace(order, store, trace, opened.refused)
        with opened.recorder as recorder:
            began_at = time.time()
            work_promptly()
            recorded = record(
                recorder, raw, raw_file.descriptor, order.bounds, lambda: _asked_ending(order)
            )
            step_back()
        encoding = Encoding(raw, recorded, context_of(order, recorder.name))
        return publish(store, trace, encoding, began_at, {"refused": dict(opened.refused)})


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
    outcome = encode(encoding, trace.descriptor)
    os.ftruncate(trace.descriptor, outcome.bytes)
    summary = {**_summary(encoding.context, encoding.recorded, outcome, began_at), **more}
    return _kept(store, trace, summary)


def _kept(store: Store, trace: UnlinkedFile, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Give a whole trace its name, and remove older ones beyond the bounds. Raises OSError."""
    removed = store.make_room(summary["bytes"])
    with UnlinkedFile.create(store.directory) as note:
        os.write(note.descriptor, json.dumps(summary).encode())
        note.publish(f"{summary['id']}{SUMMARY}")
    trace.publish(f"{summary['id']}{TRACE}")
    return {**summary, "removed": removed}


def _whole_trace(
    order: Order, store: Store, trace: UnlinkedFile, refused: Mapping[str, str]
) -> dict[str, Any]:
    """Have Perfetto record, where no recorder could be opened."""
    if PERFETTO not in names_to_try(order.backend):
        raise _NoBackendError(f"no way to record works here: {reasons_in_words(refused)}")
    began_at = time.time()
    work_promptly()
    try:
        whole = record_whole_node(order.bounds, trace.descriptor, lambda: _asked_ending(order))
    except MachineError as error:
        every = {**refused, PERFETTO: str(error)}
        raise _NoBackendError(f"no way to record works here: {reasons_in_words(every)}") from error
    step_back()
    content, selection = whole.content, order.selection
    asked = selection.label or ("some CPUs" if selection.cpus else "")
    summary = {
        **_head(order, PERFETTO, began_at, whole.seconds, whole.ending),
        "selection": f"{WHOLE_NODE} (perfetto cannot select {asked})" if asked else WHOLE_NODE,
        "events": content.events,
        "bytes": content.bytes,
        "threads": len(content.tids),
        **_losses(Losses(content.lost)),
        "refused": dict(refused),
    }
    return _kept(store, trace, summary)


def _summary(
    context: TraceContext, recorded: Recorded, outcome: Outcome, began_at: float
) -> dict[str, Any]:
    return {
        **_head(context, context.backend, began_at, recorded.seconds, outcome.ending),
        "selection": context.selection.shown,
        "events": outcome.events,
        "bytes": outcome.bytes,
        "threads": outcome.threads,
        **_losses(recorded.losses, outcome.unnamed),
    }


def _head(
    order: Order | TraceContext, backend: str, began_at: float, seconds: float, ending: Ending
) -> dict[str, Any]:
    return {
        "id": order.id,
        "by": order.by,
        "node": order.node,
        "backend": backend,
        "began_at": rfc3339(began_at),
        "seconds": round(seconds, 3),
        "ended_by": str(ending),
        "asked": asdict(order.bounds),
    }


def _losses(losses: Losses, unnamed: int = 0) -> dict[str, Any]:
    return {
        "lost": losses.count,
        "lost_by_cpu": {str(cpu): lost for cpu, lost in losses.by_cpu.items()},
        "lost_names": losses.names + unnamed,
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


class _NoBackendError(TemperError):
    """No way to record works on this node."""


def work_promptly() -> None:
    """Drain at the usual priority. At a helper's priority a busy node would lose events.

    A process of SCHED_BATCH displaces no thread when it wakes up (sched(7)).
    """
    _work_in_background(0)


def step_back() -> None:
    """Encode at the priority of a helper."""
    _work_in_background(LOWEST)


def _work_in_background(nice: int) -> None:
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)


__all__ = [
    "Order",
    "capture",
    "context_of",
    "publish",
    "refuse_full_disk",
    "step_back",
    "work_promptly",
]
