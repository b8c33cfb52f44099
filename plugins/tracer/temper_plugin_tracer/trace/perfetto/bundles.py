"""Encodes the events of one CPU as messages of an FtraceEventBundle."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from temper_plugin_tracer.trace.events import Kind, chosen
from temper_plugin_tracer.trace.perfetto.fields import HARD_INTERRUPT, Compact, Event
from temper_plugin_tracer.trace.perfetto.wire import (
    Cells,
    beside,
    block,
    block_cells,
    column,
    column_of_steps,
    number_cells,
    rows,
    text_cells,
)

__all__ = ["UNKNOWN", "bundle_of"]

UNKNOWN = -1
"""A thread id: the thread on the CPU is unknown."""
INTERRUPT_FLAG = THROTTLED = 1
MOST_TID = 1 << 22
"""PID_MAX_LIMIT of 64-bit kernels."""
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
    head = b""
    if running == UNKNOWN:
        head, count, running = _head(events, name_of)
        events = _without_head(events, count)
    switches = chosen(events, events["kind"] == Kind.SWITCH)
    wakings = chosen(events, events["kind"] == Kind.WAKING)
    ran = np.concatenate([[running], switches["next"].astype(np.int64)])
    tids, places = _by_frequency(np.concatenate([switches["next"], wakings["next"]]))
    names, name_places = _names(tids, places, name_of)
    processes = processes_of(tids)[places]
    count = len(switches)
    body = block(4, b"".join([
        *map(_name_field, names),
        _switches(switches, ran[:-1], name_places[:count], processes[:count]),
        _wakings(wakings, _runs_at(wakings, switches, ran), name_places[count:], processes[count:]),
    ])) if len(tids) else b""  # fmt: skip
    return head + body + _others(events, switches, ran), int(ran[-1])


def _head(events: Events, name_of: NameOf) -> tuple[bytes, int, int]:
    """Return FtraceEvents up to the first switch, their end, and the running thread.

    trace_processor drops them in CompactSched, since that lacks the thread that ran before.
    """
    firsts = np.flatnonzero(events["kind"] == Kind.SWITCH)[:1]
    end = int(firsts[0]) + 1 if len(firsts) else len(events)
    head = events[:end]
    content = []
    for kind, message_of in ((Kind.WAKING, _waking), (Kind.SWITCH, _switch)):
        selected = chosen(head, head["kind"] == kind)
        if len(selected):
            field, message = message_of(selected, name_of)
            content.append(_single_events(selected, selected["prev"], field, message))
    return b"".join(content), end, int(head["next"][-1]) if len(firsts) else UNKNOWN


def _without_head(events: Events, end: int) -> Events:
    is_told = np.isin(events["kind"], (Kind.SWITCH, Kind.WAKING)) & (np.arange(len(events)) < end)
    return chosen(events, ~is_told)


def _by_frequency(tids: npt.NDArray[np.uint32]) -> tuple[Numbers, Numbers]:
    """Return each thread once, the most frequent first, and the place among these for each event.

    The places of the 128 most frequent threads take one byte.
    """
    distinct, places = _distinct(tids)
    counts = np.bincount(places, minlength=len(distinct))
    order = np.argsort(-counts, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return distinct[order].astype(np.int64), ranks[places]


def _distinct(tids: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], Numbers]:
    """Return each thread once, and the place among these for each event, without sorting."""
    most = int(tids.max(initial=0))
    if most > MOST_TID:
        distinct, places = np.unique(tids, return_inverse=True)
        return distinct, places
    place_of = np.empty(most + 1, np.int64)  # only the places of threads in *tids* are used
    events = np.arange(len(tids))
    place_of[tids] = events
    distinct = tids.take(np.flatnonzero(place_of[tids] == events))
    place_of[distinct] = np.arange(len(distinct))
    return distinct, place_of[tids]


def _names(tids: Numbers, places: Numbers, name_of: NameOf) -> tuple[list[str], Numbers]:
    """Return the table of names, and the place in it for each event."""
    table: dict[str, int] = {}
    of_tids = [table.setdefault(name_of(tid), len(table)) for tid in tids.tolist()]
    return list(table), np.array(of_tids, np.int64)[places] if of_tids else np.empty(0, np.int64)


@lru_cache(maxsize=1 << 16)
def _name_field(name: str) -> bytes:
    """Return a name of the table. Each bundle has a table of its own."""
    return block(Compact.NAMES, name)


def _switches(switches: Events, inferred: Numbers, names: Numbers, processes: Numbers) -> bytes:
    other, foreign = _unlike(switches["prev"], inferred), _foreign(switches, processes)
    return b"".join([
        column_of_steps(Compact.SWITCH_NS, switches["ns"]),
        column(Compact.SWITCH_STATE, switches["state"]),
        column(Compact.SWITCH_NEXT, switches["next"]),
        column(Compact.SWITCH_PRIO, switches["prio"]),
        column(Compact.SWITCH_NAME, names),
        column_of_steps(Compact.TEMPER_SWITCH_PREV, other),
        column(Compact.TEMPER_SWITCH_PREV_TID, switches["prev"][other]),
        column_of_steps(Compact.TEMPER_SWITCH_TGID, foreign),
        column(Compact.TEMPER_SWITCH_TGID_VALUE, switches["tgid"][foreign]),
        column_of_steps(Compact.TEMPER_THROTTLED, np.flatnonzero(switches["flags"] & THROTTLED)),
    ])  # fmt: skip


def _wakings(wakings: Events, inferred: Numbers, names: Numbers, processes: Numbers) -> bytes:
    other, foreign = _unlike(wakings["prev"], inferred), _foreign(wakings, processes)
    flags = (wakings["flags"] & INTERRUPT_FLAG) * HARD_INTERRUPT
    return b"".join([
        column_of_steps(Compact.WAKING_NS, wakings["ns"]),
        column(Compact.WAKING_TID, wakings["next"]),
        column(Compact.WAKING_TARGET, wakings["target"]),
        column(Compact.WAKING_PRIO, wakings["prio"]),
        column(Compact.WAKING_NAME, names),
        column(Compact.WAKING_FLAGS, flags if flags.any() else flags[:0]),
        column_of_steps(Compact.TEMPER_WAKER, other),
        column(Compact.TEMPER_WAKER_TID, wakings["prev"][other]),
        column_of_steps(Compact.TEMPER_WAKING_TGID, foreign),
        column(Compact.TEMPER_WAKING_TGID_VALUE, wakings["tgid"][foreign]),
    ])  # fmt: skip


def _unlike(tids: npt.NDArray[np.uint32], inferred: Numbers) -> Numbers:
    """Return the places of the threads that a reader would infer wrongly."""
    return np.flatnonzero(tids.astype(np.int64) != inferred)


def _foreign(events: Events, processes: Numbers) -> Numbers:
    """Return the places of the events whose process is not the one that a reader knows."""
    return np.flatnonzero((events["tgid"] != 0) & (events["tgid"] != processes))


def _runs_at(events: Events, switches: Events, ran: Numbers) -> Numbers:
    """Return the running thread at each event. At a switch it is still the thread before."""
    runs: Numbers = ran[np.searchsorted(switches["ns"], events["ns"], "left")]
    return runs


def _others(events: Events, switches: Events, ran: Numbers) -> bytes:
    """Return an FtraceEvent for each event that CompactSched does not have."""
    content = []
    for kind, fields_of in _MESSAGES.items():
        selected = chosen(events, events["kind"] == kind)
        if not len(selected):
            continue
        runs = np.maximum(_runs_at(selected, switches, ran), 0)
        field, message = fields_of(selected)
        content.append(_single_events(selected, runs, field, message))
    return b"".join(content)


def _single_events(events: Events, runs: npt.NDArray[Any], field: int, message: Cells) -> bytes:
    """Return an FtraceEvent for each event. *runs* are the threads on which they happen."""
    cells = [
        number_cells(Event.TIMESTAMP, events["ns"]),
        number_cells(Event.PID, runs),
        block_cells(field, message),
    ]
    is_told = np.isin(events["kind"], (Kind.SWITCH, Kind.WAKING))
    if is_told.all():
        is_waking = events["kind"] == Kind.WAKING
        flags = (events["flags"] & INTERRUPT_FLAG) * is_waking * HARD_INTERRUPT
        cells += [
            number_cells(Event.COMMON_FLAGS, flags),
            number_cells(Event.TEMPER_TGID, events["tgid"]),
        ]
    return rows(block_cells(2, beside(cells)))


def _switch(events: Events, name_of: NameOf) -> tuple[Event, Cells]:
    cells = [
        block_cells(1, text_cells([name_of(tid) for tid in events["prev"].tolist()])),
        number_cells(2, events["prev"]),
        number_cells(4, events["state"]),
        block_cells(5, text_cells([name_of(tid) for tid in events["next"].tolist()])),
        number_cells(6, events["next"]),
        number_cells(7, events["prio"]),
    ]
    return Event.SCHED_SWITCH, beside(cells)


def _waking(events: Events, name_of: NameOf) -> tuple[Event, Cells]:
    cells = [
        block_cells(1, text_cells([name_of(tid) for tid in events["next"].tolist()])),
        number_cells(2, events["next"]),
        number_cells(3, events["prio"]),
        number_cells(5, events["target"]),
    ]
    return Event.SCHED_WAKING, beside(cells)


def _migration(events: Events) -> tuple[Event, Cells]:
    cells = [
        number_cells(2, events["next"]),
        number_cells(3, events["prio"]),
        number_cells(4, events["prev"]),
        number_cells(5, events["target"]),
    ]
    return Event.SCHED_MIGRATE_TASK, beside(cells)


def _interrupt_begins(events: Events) -> tuple[Event, Cells]:
    names = text_cells([f"irq {number}" for number in events["next"].tolist()])
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
