"""Decodes an FtraceEventBundle into events whose inferable parts are still open."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from attrs import define, field

from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind
from temper_plugin_tracer.trace.perfetto.fields import (
    HARD_INTERRUPT,
    SOFT_INTERRUPT,
    Compact,
    Event,
)
from temper_plugin_tracer.trace.perfetto.scanning import (
    Buffer,
    DamagedError,
    fields,
    signed,
    unpacked,
)

__all__ = ["OPEN_EVENT", "WAKEUP", "Bundle", "decode_bundle"]

OPEN_EVENT = np.dtype([*SCHED_EVENT.descr, ("known", "u1")])
"""An event. ``known`` is whether ``prev`` was written. Otherwise it has to be inferred."""
WAKEUP = 100
"""Kind of a sched_wakeup: the same wake-up as the sched_waking before it, if there is one."""
MOST_CPU = 0xFFFF
UINT32 = 0xFFFFFFFF
Events = npt.NDArray[np.void]
Reader = Callable[[dict[int, int], int, int], tuple[int, ...]]
Columns = dict[int, npt.NDArray[np.uint64]]


@define
class Bundle:
    """The events of one bundle in time order, and the names of threads in it."""

    cpu: int
    events: Events
    names: dict[int, str] = field(factory=dict)


def decode_bundle(data: Buffer, at: int, end: int) -> Bundle:
    """Return the events of the FtraceEventBundle between *at* and *end*. Raises DamagedError."""
    cpu = offset = 0
    clock: dict[int, int] = {}
    parts: list[Events] = []
    names: dict[int, str] = {}
    singles: list[tuple[int, ...]] = []
    for number, value, stop in fields(data, at, end):
        if number == 1:
            cpu = value
        elif number == 2 and stop:  # noqa: PLR2004 - FtraceEventBundle.event
            _single(data, value, stop, singles, names)
        elif number == 4 and stop:  # noqa: PLR2004 - FtraceEventBundle.compact_sched
            parts += _compact(data, value, stop, names)
        elif not stop:
            clock[number] = value
    if clock.get(5) and 6 in clock and 7 in clock:  # noqa: PLR2004 - another clock than boottime
        offset = clock[7] - clock[6]
    if cpu > MOST_CPU:
        raise DamagedError(at, f"an event of CPU {cpu}")
    if singles:
        parts.append(_table(singles, at))
    events = np.concatenate(parts) if parts else np.empty(0, OPEN_EVENT)
    events["cpu"] = cpu
    events["ns"] += np.uint64(offset % (1 << 64))
    return Bundle(cpu, events[np.argsort(events["ns"], kind="stable")], names)


def _compact(data: Buffer, at: int, end: int, names: dict[int, str]) -> list[Events]:
    columns: dict[int, list[npt.NDArray[np.uint64]]] = {}
    texts: list[str] = []
    for number, value, stop in fields(data, at, end):
        if number == Compact.NAMES:
            texts.append(_text(data, value, stop))
        elif stop:
            columns.setdefault(number, []).append(unpacked(data, value, stop))
        else:  # an unpacked element of a repeated field
            columns.setdefault(number, []).append(np.array([value], np.uint64))
    table = {number: np.concatenate(parts) for number, parts in columns.items()}
    wakings = _wakings(table, at)
    switches = _switches(table, at)
    _add_names(names, texts, switches["next"], table.get(Compact.SWITCH_NAME))
    _add_names(names, texts, wakings["next"], table.get(Compact.WAKING_NAME))
    # A waking comes first: at the time of a switch, the thread before it is the waker.
    return [wakings, switches]


def _switches(table: Columns, at: int) -> Events:
    times = _column(table, Compact.SWITCH_NS, None, at)
    events = np.zeros(len(times), OPEN_EVENT)
    events["ns"] = np.cumsum(times, dtype=np.uint64)
    events["kind"] = Kind.SWITCH
    events["next"] = _column(table, Compact.SWITCH_NEXT, len(times), at)
    events["state"] = _column(table, Compact.SWITCH_STATE, len(times), at)
    events["prio"] = _column(table, Compact.SWITCH_PRIO, len(times), at)
    events["flags"][_places(table, Compact.TEMPER_THROTTLED, len(times))] = 1
    _correct(events, "prev", table, (Compact.TEMPER_SWITCH_PREV, Compact.TEMPER_SWITCH_PREV_TID))
    _correct(events, "tgid", table, (Compact.TEMPER_SWITCH_TGID, Compact.TEMPER_SWITCH_TGID_VALUE))
    return events


def _wakings(table: Columns, at: int) -> Events:
    times = _column(table, Compact.WAKING_NS, None, at)
    events = np.zeros(len(times), OPEN_EVENT)
    events["ns"] = np.cumsum(times, dtype=np.uint64)
    events["kind"] = Kind.WAKING
    events["next"] = _column(table, Compact.WAKING_TID, len(times), at)
    events["target"] = _column(table, Compact.WAKING_TARGET, len(times), at)
    events["prio"] = _column(table, Compact.WAKING_PRIO, len(times), at)
    if Compact.WAKING_FLAGS in table:  # Perfetto before v33 wrote none
        flags = _column(table, Compact.WAKING_FLAGS, len(times), at)
        events["flags"] = (flags & np.uint64(HARD_INTERRUPT | SOFT_INTERRUPT)) != 0
    _correct(events, "prev", table, (Compact.TEMPER_WAKER, Compact.TEMPER_WAKER_TID))
    _correct(events, "tgid", table, (Compact.TEMPER_WAKING_TGID, Compact.TEMPER_WAKING_TGID_VALUE))
    return events


def _column(table: Columns, field: Compact, size: int | None, at: int) -> npt.NDArray[np.uint64]:
    values = table.get(field, np.empty(0, np.uint64))
    if size is not None and len(values) != size:
        raise DamagedError(at, f"{len(values)} values of {field.name} for {size} events")
    return values


def _correct(events: Events, name: str, table: Columns, at: tuple[Compact, Compact]) -> None:
    """Set what a reader would infer wrongly."""
    places = _places(table, at[0], len(events))
    values = table.get(at[1], np.empty(0, np.uint64))
    if len(places) != len(values):
        raise DamagedError(0, f"{at[0].name} does not fit its events")
    events[name][places] = values
    if name == "prev":
        events["known"][places] = 1


def _places(table: Columns, field: Compact, size: int) -> npt.NDArray[np.int64]:
    """Return the places of a column of differences, which are below *size*."""
    places = np.cumsum(table.get(field, np.empty(0, np.uint64)), dtype=np.uint64)
    if len(places) and places.max() >= size:
        raise DamagedError(0, f"{field.name} does not fit its events")
    return places.astype(np.int64)


def _add_names(
    names: dict[int, str],
    texts: list[str],
    tids: npt.NDArray[np.uint32],
    places: npt.NDArray[np.uint64] | None,
) -> None:
    if places is None or len(places) != len(tids):
        return
    unique, firsts = np.unique(tids, return_index=True)
    for tid, place in zip(unique.tolist(), places[firsts].tolist(), strict=True):
        if place < len(texts):
            names[tid] = texts[place]


def _text(data: Buffer, at: int, end: int) -> str:
    return bytes(data[at:end]).decode("utf-8", "replace")


def _table(singles: list[tuple[int, ...]], at: int) -> Events:
    """Return the events of rows whose columns are ``order``."""
    columns = np.array(singles, object).T
    events = np.zeros(len(singles), OPEN_EVENT)
    order = ("ns", "tgid", "prev", "next", "target", "state", "prio", "kind", "flags", "known")
    try:
        for name, values in zip(order, columns, strict=True):
            events[name] = values.astype(OPEN_EVENT[name])
    except OverflowError:
        raise DamagedError(at, "a number of an event is out of its range") from None
    return events


def _single(
    data: Buffer, at: int, end: int, singles: list[tuple[int, ...]], names: dict[int, str]
) -> None:
    """Add the event of an FtraceEvent, if it is one of the scheduler or of interrupts."""
    ns = pid = flags = tgid = 0
    kind = start = stop = 0
    for number, value, last in fields(data, at, end):
        if number == Event.TIMESTAMP:
            ns = value
        elif number == Event.PID:
            pid = value & UINT32
        elif number == Event.COMMON_FLAGS:
            flags = value
        elif number == Event.TEMPER_TGID:
            tgid = value
        elif last and number in _READERS:
            kind, start, stop = number, value, last
    if kind:
        numbers, texts = _message(data, start, stop)
        row = _READERS[kind](numbers, pid, flags)
        for name, tid in _NAMED.get(kind, ()):
            if name in texts and tid in numbers:
                names[numbers[tid]] = texts[name]
        singles.append((ns, tgid, *row))


def _message(data: Buffer, at: int, end: int) -> tuple[dict[int, int], dict[int, str]]:
    numbers: dict[int, int] = {}
    texts: dict[int, str] = {}
    for number, value, stop in fields(data, at, end):
        if stop:
            texts[number] = _text(data, value, stop)
        else:
            numbers[number] = signed(value)
    return numbers, texts


def _read_switch(found: dict[int, int], _pid: int, _flags: int) -> tuple[int, ...]:
    state, prio = found.get(4, 0) & 0xFFFF, found.get(7, 0)
    return found.get(2, 0), found.get(6, 0), 0, state, prio, Kind.SWITCH, 0, 1


def _read_waking(found: dict[int, int], pid: int, flags: int) -> tuple[int, ...]:
    interrupt = int(bool(flags & (HARD_INTERRUPT | SOFT_INTERRUPT)))
    return (
        *(pid, found.get(2, 0), found.get(5, 0), 0, found.get(3, 0)),
        *(Kind.WAKING, interrupt, 1),
    )


def _read_wakeup(found: dict[int, int], pid: int, flags: int) -> tuple[int, ...]:
    row = list(_read_waking(found, pid, flags))
    row[5] = WAKEUP
    return tuple(row)


def _read_migration(found: dict[int, int], _pid: int, _flags: int) -> tuple[int, ...]:
    prev, target = found.get(4, 0), found.get(5, 0)
    return prev, found.get(2, 0), target, 0, found.get(3, 0), Kind.MIGRATION, 0, 1


def _reader_of(kind: Kind) -> Reader:
    def read(found: dict[int, int], _pid: int, _flags: int) -> tuple[int, ...]:
        return 0, found.get(1, 0), 0, 0, 0, kind, 0, 1

    return read


_READERS: dict[int, Reader] = {
    Event.SCHED_SWITCH: _read_switch,
    Event.SCHED_WAKING: _read_waking,
    Event.SCHED_WAKEUP: _read_wakeup,
    Event.SCHED_WAKEUP_NEW: _read_waking,
    Event.SCHED_MIGRATE_TASK: _read_migration,
    Event.IRQ_ENTRY: _reader_of(Kind.INTERRUPT_BEGINS),
    Event.IRQ_EXIT: _reader_of(Kind.INTERRUPT_ENDS),
    Event.SOFTIRQ_ENTRY: _reader_of(Kind.SOFTIRQ_BEGINS),
    Event.SOFTIRQ_EXIT: _reader_of(Kind.SOFTIRQ_ENDS),
}
_NAMED: dict[int, tuple[tuple[int, int], ...]] = {
    Event.SCHED_SWITCH: ((1, 2), (5, 6)),
    Event.SCHED_WAKING: ((1, 2),),
    Event.SCHED_WAKEUP: ((1, 2),),
    Event.SCHED_WAKEUP_NEW: ((1, 2),),
}
"""Fields of a name and of its thread id, by event."""
