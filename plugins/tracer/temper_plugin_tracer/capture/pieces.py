"""Cuts drains into pieces of a time each, the same on all CPUs."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from temper_plugin_tracer.capture.drained import Drained

Events = Mapping[int, np.ndarray]


def pieces(drained: Drained, most_events: int) -> Iterator[Events]:
    """Yield the events of a drain in time order, about *most_events* at a time."""
    number = -(-drained.count // most_events)
    if number <= 1:
        if drained.count:
            yield drained.events
        return
    begin = min(int(events["ns"][0]) for events in drained.events.values())
    end = max(int(events["ns"][-1]) for events in drained.events.values()) + 1
    edges = np.linspace(begin, end, number + 1).astype(np.uint64)
    edges[-1] = end
    for before, after in pairwise(edges):
        piece = {cpu: _between(events, before, after) for cpu, events in drained.events.items()}
        if any(len(events) for events in piece.values()):
            yield {cpu: events for cpu, events in piece.items() if len(events)}


def first_events(piece: Events, most: int) -> Events:
    """Return the earliest *most* events of a piece."""
    if most <= 0:
        return {}
    if sum(len(events) for events in piece.values()) <= most:
        return piece
    all_ns = np.concatenate([events["ns"] for events in piece.values()])
    last = np.partition(all_ns, most - 1)[most - 1]
    cut = {cpu: _until(events, last) for cpu, events in piece.items()}
    excess = sum(len(events) for events in cut.values()) - most
    for cpu, events in cut.items():  # several events have the last time
        same = int((events["ns"] == last).sum())
        dropped = min(excess, same)
        cut[cpu] = events[: len(events) - dropped]
        excess -= dropped
    return {cpu: events for cpu, events in cut.items() if len(events)}


def count_of(piece: Events) -> int:
    """Return the number of events."""
    return sum(len(events) for events in piece.values())


def _between(events: np.ndarray, begin: np.uint64, end: np.uint64) -> np.ndarray:
    first, last = np.searchsorted(events["ns"], [begin, end], side="left")
    return events[first:last]


def _until(events: np.ndarray, last: np.uint64) -> np.ndarray:
    return events[: int(np.searchsorted(events["ns"], last, side="right"))]
