"""Encodes the events of one CPU as messages of an FtraceEventBundle."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.perfetto.fields import HARD_INTERRUPT, Compact, Event
from temper_plugin_tracer.trace.perfetto.wire import (
    Cells,
    beside,
    block,
    block_cells,
    column,
    differences,
    number_cells,
    rows,
    text_cells,
)

__all__ = ["UNKNOWN", "bundle_of"]

UNKNOWN = -1
"""A thread id: nobody knows who runs on the CPU."""
INTERRUPT_FLAG = 1
Numbers = npt.NDArray[np.int64]
Events = npt.NDArray[np.void]
NameOf = Callable[[int], str]
ProcessesOf = Callable[[Numbers], Numbers]


def bundle_of(
    events: Events, running: int, name_of: NameOf, processes_of: ProcessesOf
) -> tuple[bytes, int]:
    """Return the fields of a bundle without its CPU, and the thread that runs at its end.

    *running* is the thread that ran before the first event. *processes_of* returns the process that
    a reader knows for a thread, 0 if it knows none.
    """
    switches = events[events["kind"] == Kind.SWITCH]
    wakings = events[events["kind"] == Kind.WAKING]
    ran = np.concatenate([[running], switches["next"].astype(np.int64)])
    tids, places = np.unique(
        np.concatenate([switches["next"], wakings["next"]]), return_inverse=True
    )
    names, name_places = _names(tids, places, name_of)
    processes = processes_of(tids.astype(np.int64))[places]
    count = len(switches)
    body = block(4, b"".join([
        *[block(Compact.NAMES, name) for name in names],
        _switches(switches, ran[:-1], name_places[:count], processes[:count]),
        _wakings(wakings, _runs_at(wakings, switches, ran), name_places[count:], processes[count:]),
    ])) if len(tids) else b""  # fmt: skip
    return body + _others(events, switches, ran), int(ran[-1])


def _names(tids: Numbers, places: Numbers, name_of: NameOf) -> tuple[list[str], Numbers]:
    """Return the table of names, and the place in it for each event."""
    table: dict[str, int] = {}
    of_tids = [table.setdefault(name_of(tid), len(table)) for tid in tids.tolist()]
    return list(table), np.array(of_tids, np.int64)[places] if of_tids else np.empty(0, np.int64)


def _switches(switches: Events, inferred: Numbers, names: Numbers, processes: Numbers) -> bytes:
    other, foreign = _unlike(switches["prev"], inferred), _foreign(switches, processes)
    return b"".join([
        column(Compact.SWITCH_NS, differences(switches["ns"])),
        column(Compact.SWITCH_STATE, switches["state"]),
        column(Compact.SWITCH_NEXT, switches["next"]),
        column(Compact.SWITCH_PRIO, switches["prio"]),
        column(Compact.SWITCH_NAME, names),
        column(Compact.TEMPER_SWITCH_PREV, differences(other)),
        column(Compact.TEMPER_SWITCH_PREV_TID, switches["prev"][other]),
        column(Compact.TEMPER_SWITCH_TGID, differences(foreign)),
        column(Compact.TEMPER_SWITCH_TGID_VALUE, switches["tgid"][foreign]),
    ])  # fmt: skip


def _wakings(wakings: Events, inferred: Numbers, names: Numbers, processes: Numbers) -> bytes:
    other, foreign = _unlike(wakings["prev"], inferred), _foreign(wakings, processes)
    return b"".join([
        column(Compact.WAKING_NS, differences(wakings["ns"])),
        column(Compact.WAKING_TID, wakings["next"]),
        column(Compact.WAKING_TARGET, wakings["target"]),
        column(Compact.WAKING_PRIO, wakings["prio"]),
        column(Compact.WAKING_NAME, names),
        column(Compact.WAKING_FLAGS, (wakings["flags"] & INTERRUPT_FLAG) * HARD_INTERRUPT),
        column(Compact.TEMPER_WAKER, differences(other)),
        column(Compact.TEMPER_WAKER_TID, wakings["prev"][other]),
        column(Compact.TEMPER_WAKING_TGID, differences(foreign)),
        column(Compact.TEMPER_WAKING_TGID_VALUE, wakings["tgid"][foreign]),
    ])  # fmt: skip


def _unlike(tids: npt.NDArray[np.uint32], inferred: Numbers) -> Numbers:
    """Return the places of the threads that a reader would infer wrongly."""
    return np.flatnonzero(tids.astype(np.int64) != inferred)


def _foreign(events: Events, processes: Numbers) -> Numbers:
    """Return the places of the events whose process is not the one that a reader knows."""
    return np.flatnonzero((events["tgid"] != 0) & (events["tgid"] != processes))


def _runs_at(events: Events, switches: Events, ran: Numbers) -> Numbers:
    """Return who runs at each event. At the time of a switch it is still the thread before it."""
    runs: Numbers = ran[np.searchsorted(switches["ns"], events["ns"], "left")]
    return runs


def _others(events: Events, switches: Events, ran: Numbers) -> bytes:
    """Return an FtraceEvent for each event that CompactSched does not have."""
    content = []
    for kind, fields_of in _MESSAGES.items():
        chosen = events[events["kind"] == kind]
        if not len(chosen):
            continue
        runs = np.maximum(_runs_at(chosen, switches, ran), 0)
        field, message = fields_of(chosen)
        event = beside([
            number_cells(Event.TIMESTAMP, chosen["ns"]),
            number_cells(Event.PID, runs),
            block_cells(field, message),
        ])  # fmt: skip
        content.append(rows(block_cells(2, event)))
    return b"".join(content)


def _migration(events: Events) -> tuple[Event, Cells]:
    cells = [
        number_cells(2, events["next"]),
        number_cells(3, events["prio"]),
        number_cells(4, events["prev"]),
        number_cells(5, events["target"]),
    ]
    return Event.SCHED_MIGRATE_TASK, beside(cells)


def _interrupt_begins(events: Events) -> tuple[Event, Cells]:
    names = text_cells([f"irq {each}" for each in events["next"].tolist()])
    return Event.IRQ_ENTRY, beside([number_cells(1, events["next"]), block_cells(2, names)])


def _interrupt_ends(events: Events) -> tuple[Event, Cells]:
    return Event.IRQ_EXIT, number_cells(1, events["next"])


def _softirq_begins(events: Events) -> tuple[Event, Cells]:
    return Event.SOFTIRQ_ENTRY, number_cells(1, events["next"])


def _softirq_ends(events: Events) -> tuple[Event, Cells]:
    return Event.SOFTIRQ_EXIT, number_cells(1, events["next"])


_MESSAGES: dict[Kind, Callable[[Any], tuple[Event, Cells]]] = {
    Kind.MIGRATION: _migration,
    Kind.INTERRUPT_BEGINS: _interrupt_begins,
    Kind.INTERRUPT_ENDS: _interrupt_ends,
    Kind.SOFTIRQ_BEGINS: _softirq_begins,
    Kind.SOFTIRQ_ENDS: _softirq_ends,
}
