"""Applies a selection to events of the whole node, by the rule of ``recorder.bpf.c``.

Of selected threads all events are kept, with what wakes them. Of a CPU everything is kept while a
selected thread runs there or has been queued there, and for ``NEAR_NS`` after.
"""

from collections.abc import Mapping

import numpy as np
from attrs import define, field

from temper_plugin_tracer.capture.kernel_layout import NEAR_NS
from temper_plugin_tracer.capture.who_is_who import MOST_TIDS
from temper_plugin_tracer.trace.events import Kind


@define(eq=False)
class Nearness:
    """Remembers when a selected thread was near each CPU."""

    _last: dict[int, int] = field(factory=dict)
    _marks: dict[int, np.ndarray] = field(factory=dict)

    def kept(
        self, events: Mapping[int, np.ndarray], is_selected: np.ndarray
    ) -> dict[int, np.ndarray]:
        """Return the events to keep of a stretch of time, in time order for each CPU.

        *is_selected* has a truth value for each thread id.
        """
        self._mark(events, is_selected)
        kept = {cpu: each[self._is_kept(each, is_selected)] for cpu, each in events.items()}
        self._last = {cpu: int(marks[-1]) for cpu, marks in self._marks.items()}
        return {cpu: each for cpu, each in kept.items() if len(each)}

    def _mark(self, events: Mapping[int, np.ndarray], is_selected: np.ndarray) -> None:
        parts = {cpu: [np.array([ns], np.uint64)] for cpu, ns in self._last.items()}
        for each in events.values():
            kinds, next_one = each["kind"], is_selected[_tids(each, "next")]
            prev_one = is_selected[_tids(each, "prev")]
            is_switch = kinds == Kind.SWITCH
            is_moved = (kinds == Kind.WAKING) | (kinds == Kind.MIGRATION)
            marking = each[(is_switch & (prev_one | next_one)) | (is_moved & next_one)]
            for cpu in np.unique(marking["target"]).tolist():
                parts.setdefault(cpu, []).append(marking["ns"][marking["target"] == cpu])
        self._marks = {cpu: np.sort(np.concatenate(each)) for cpu, each in parts.items()}

    def _is_kept(self, events: np.ndarray, is_selected: np.ndarray) -> np.ndarray:
        kinds = events["kind"]
        is_moved = (kinds == Kind.WAKING) | (kinds == Kind.MIGRATION)
        is_own = is_moved & is_selected[_tids(events, "next")]
        is_own |= (kinds == Kind.WAKING) & is_selected[_tids(events, "prev")]
        is_near = np.zeros(len(events), bool)
        for cpu in np.unique(events["target"]).tolist():
            there = events["target"] == cpu
            is_near[there] = self._is_near(cpu, events["ns"][there])
        kept: np.ndarray = is_own | is_near
        return kept

    def _is_near(self, cpu: int, ns: np.ndarray) -> np.ndarray:
        marks = self._marks.get(cpu)
        if marks is None:
            return np.zeros(len(ns), bool)
        before = np.searchsorted(marks, ns, side="right") - 1
        since = ns - marks[np.maximum(before, 0)]
        near: np.ndarray = (before >= 0) & (since <= np.uint64(NEAR_NS))
        return near


def _tids(events: np.ndarray, column: str) -> np.ndarray:
    """Return a column as indexes, 0 for what cannot be a thread id."""
    tids = events[column]
    return np.where(tids < MOST_TIDS, tids, 0)
