"""Merges the bundles of all CPUs by time, and infers what CompactSched leaves out."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind
from temper_plugin_tracer.trace.perfetto.decoding import WAKEUP

__all__ = ["MOST_IN_BLOCK", "Inference", "merged"]

MOST_IN_BLOCK = 1 << 16
Events = npt.NDArray[np.void]
Batch = tuple[list[Events], int | None]
"""Events of decoded bundles, and the time of the first event in the bundles after them."""


class TimeOrderError(ValueError):
    """An event precedes events that were merged before it."""


def merged(batches: Iterable[Batch]) -> Iterator[Events]:
    """Yield the events of *batches* in time order. Raises TimeOrderError.

    Holds back only events at or after the first one of the bundles that are still to come.
    """
    held: list[Events] = []
    reached = 0
    for bundles, horizon in batches:
        if any(len(bundle) and int(bundle["ns"][0]) < reached for bundle in bundles):
            raise TimeOrderError("events of one bundle are not in time order")
        held += bundles
        if horizon is None:
            ready, held = held, []
        else:
            reached = horizon
            cuts = [
                int(np.searchsorted(bundle["ns"], np.uint64(horizon), "left")) for bundle in held
            ]
            ready = [bundle[:cut] for bundle, cut in zip(held, cuts, strict=True) if cut]
            # A copy lets go of the bundle that a view would keep.
            held = [
                bundle[cut:].copy() if cut else bundle
                for bundle, cut in zip(held, cuts, strict=True)
                if cut < len(bundle)
            ]
        if ready:
            yield from _blocks(np.concatenate(ready))


def _blocks(events: Events) -> Iterator[Events]:
    waking_first = events["kind"] == Kind.SWITCH
    order = np.lexsort((waking_first, events["cpu"], events["ns"]))
    for first in range(0, len(order), MOST_IN_BLOCK):
        yield events[order[first : first + MOST_IN_BLOCK]]


class Inference:
    """Completes events in time order: the thread that left the CPU, the waker, the process."""

    def __init__(self, process_of: Mapping[int, int]) -> None:
        pairs = sorted(process_of.items())
        self._tids = np.array([tid for tid, _ in pairs], np.int64)
        self._tgids = np.array([tgid for _, tgid in pairs], np.int64)
        self._running: dict[int, int] = {}
        self._woken: set[int] = set()

    def complete(self, events: Events) -> Events:
        """Return the events of a block as ``SCHED_EVENT``."""
        for cpu in np.unique(events["cpu"]).tolist():
            self._infer_threads(events, cpu)
        kept = events[self._wakings_once(events)]
        done = np.zeros(len(kept), SCHED_EVENT)
        for name in SCHED_EVENT.names or ():
            done[name] = kept[name]
        self._add_processes(done)
        return done

    def _infer_threads(self, events: Events, cpu: int) -> None:
        """Set ``prev`` of switches and wakings: the thread that runs on the CPU before them."""
        places = np.flatnonzero(events["cpu"] == cpu)
        here = events[places]
        switches = np.flatnonzero(here["kind"] == Kind.SWITCH)
        ran = np.concatenate([[self._running.get(cpu, 0)], here["next"][switches]])
        before = ran[np.searchsorted(switches, np.arange(len(here)), "left")]
        is_open = ((here["kind"] == Kind.SWITCH) | (here["kind"] == Kind.WAKING)) & (
            here["known"] == 0
        )
        events["prev"][places[is_open]] = before[is_open]
        self._running[cpu] = int(ran[-1])

    def _wakings_once(self, events: Events) -> npt.NDArray[np.bool_]:
        """Return which events to keep, with a sched_wakeup only where no sched_waking was before.

        Both are of one wake-up, up to a switch to the thread.
        """
        keep = np.ones(len(events), np.bool_)
        of_interest = np.isin(events["kind"], (Kind.WAKING, WAKEUP))
        if not (events["kind"] == WAKEUP).any():
            self._woken = set(events["next"][of_interest].tolist())
            return keep
        for place in np.flatnonzero(of_interest).tolist():
            tid = int(events["next"][place])
            if events["kind"][place] == Kind.WAKING:
                self._woken.add(tid)
            elif tid in self._woken:
                self._woken.discard(tid)
                keep[place] = False
            else:
                events["kind"][place] = Kind.WAKING
        return keep

    def _add_processes(self, events: Events) -> None:
        """Set ``tgid`` if the event lacks it."""
        if not len(self._tids):
            return
        of_threads = np.isin(events["kind"], (Kind.SWITCH, Kind.WAKING, Kind.MIGRATION))
        open_ones = np.flatnonzero(of_threads & (events["tgid"] == 0))
        tids = events["next"][open_ones].astype(np.int64)
        places = np.minimum(np.searchsorted(self._tids, tids), len(self._tids) - 1)
        is_known = self._tids[places] == tids
        events["tgid"][open_ones[is_known]] = self._tgids[places[is_known]]
