"""Records of ``trace.roster`` as Temper's own fields of a Perfetto trace, both ways."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import asdict

from temper_plugin_tracer.trace.perfetto.fields import Roster
from temper_plugin_tracer.trace.perfetto.wire import block, column, column_of_steps
from temper_plugin_tracer.trace.roster import (
    MOST_CPUS,
    MOST_SIBLINGS,
    CaptureFacts,
    TracedMachine,
    TracedThread,
)

__all__ = ["facts_from", "facts_json", "machine_from", "machine_json", "roster_message"]


def machine_json(machine: TracedMachine) -> str:
    """Return a machine as JSON."""
    return json.dumps([machine.utsname, machine.cpus, sorted(machine.cores.items())])


def machine_from(text: bytes) -> TracedMachine:
    """Return the machine of ``machine_json``. Raises ValueError, TypeError."""
    utsname, cpus, cores = json.loads(text)
    return TracedMachine(
        utsname=tuple(_text(part) for part in utsname),
        cpus=tuple(_cpu(cpu) for cpu in cpus),
        cores=_cores({_cpu(cpu): _count(core) for cpu, core in cores}),
    )


def facts_json(facts: CaptureFacts) -> str:
    """Return the facts of a capture as JSON."""
    lost = sorted(facts.lost.items())
    return json.dumps(asdict(facts, recurse=False) | {"lost": lost})


def facts_from(text: bytes) -> CaptureFacts:
    """Return the facts of ``facts_json``. Raises ValueError, TypeError, KeyError."""
    facts: dict[str, Any] = json.loads(text)
    return CaptureFacts(
        node=_text(facts["node"]),
        seconds=float(facts["seconds"]),
        backend=_text(facts["backend"]),
        selection=_text(facts["selection"]),
        asked_by=_text(facts["asked_by"]),
        bounds={_text(name): float(most) for name, most in facts["bounds"].items()},
        ended_by=_text(facts["ended_by"]),
        lost={_count(cpu): _count(lost) for cpu, lost in facts["lost"]},
        planned={
            _text(name): tuple(_count(cpu) for cpu in cpus)
            for name, cpus in facts["planned"].items()
        },
        tells_throttling=bool(facts["tells_throttling"]),
        cpus=tuple(_cpu(cpu) for cpu in facts.get("cpus", ())),
    )


def roster_message(threads: Sequence[TracedThread]) -> bytes:
    """Return the threads as columns. Each text is written once."""
    tids = np.array([thread.tid for thread in threads], np.int64)
    tgids = np.array([thread.tgid for thread in threads], np.int64)
    texts: dict[str, int] = {"": 0}
    places = [
        (Roster.NAME, [thread.name for thread in threads]),
        (Roster.PROCESS, [thread.process for thread in threads]),
        (Roster.POD, [thread.pod for thread in threads]),
        (Roster.GROUP, [thread.group for thread in threads]),
        (Roster.TIER, [thread.tier for thread in threads]),
        (Roster.LAYER, [thread.layer for thread in threads]),
    ]
    columns = [
        column_of_steps(Roster.TID, tids),
        _column_unless_zero(Roster.ABOVE_TGID, tids - tgids),
        *[_column_unless_zero(field, _interned(values, texts)) for field, values in places],
        _column_unless_zero(
            Roster.IS_SELECTED, np.array([thread.is_selected for thread in threads], np.int64)
        ),
    ]
    return b"".join([*[block(Roster.TEXTS, text) for text in texts], *columns])


def _column_unless_zero(field: int, values: npt.NDArray[np.int64]) -> bytes:
    return column(field, values) if values.any() else b""


def _interned(values: Iterable[str], texts: dict[str, int]) -> npt.NDArray[np.int64]:
    return np.array([texts.setdefault(value, len(texts)) for value in values], np.int64)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _cores(core_of: dict[int, int]) -> dict[int, int]:
    if max(Counter(core_of.values()).values(), default=0) > MOST_SIBLINGS:
        raise ValueError(f"a core of more than {MOST_SIBLINGS} CPUs")
    return core_of


def _cpu(value: object) -> int:
    cpu = _count(value)
    if not 0 <= cpu < MOST_CPUS:
        raise ValueError(f"{cpu} is no CPU")
    return cpu


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value
