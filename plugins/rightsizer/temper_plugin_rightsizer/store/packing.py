"""The bytes of an ``IntervalDemand`` in the history."""

import json
from collections.abc import Iterator, Sequence
from struct import Struct, error
from typing import Any

from attrs import astuple

from temper_plugin_rightsizer.demand.histogram import DemandHistogram
from temper_plugin_rightsizer.demand.interval import (
    LEAST_BYTES,
    LEAST_CPU,
    MOST_NAMES,
    Counts,
    IntervalDemand,
)
from temper_plugin_rightsizer.demand.waits import MOST_GROUPS, GroupTime, Waits
from temper_plugin_rightsizer.demand.window import MOST_RANKS

_LENGTH = Struct("<H")
MOST = 2**63
LONGEST_NAME = 64
"""Of a thread's family. A name of 15 bytes has less, but an hour may come from a user."""
MOST_PART_BYTES = 2**16 - 1


class DamagedError(Exception):
    """Bytes that no version of this module wrote."""


class OversizedError(Exception):
    """A demand that takes more bytes than a row can have, as no measured one does."""


def pack(demand: IntervalDemand) -> bytes:
    """Return *demand* as bytes: names, counters and waits, then parts. Raises OversizedError.

    The parts are the start-up's own bytes, the histograms of CPU, run delay and memory, and two of
    each rank.
    """
    head = [demand.names, astuple(demand.counts), _waits_as_list(demand.waits)]
    packed = bytearray(_part(json.dumps(head, separators=(",", ":")).encode()))
    packed += _part(pack(demand.startup) if demand.startup else b"")
    histograms = [demand.cpu, demand.run_delay, demand.memory]
    for used, rest in zip(demand.ranks, demand.rests, strict=True):
        histograms += [used, rest]
    for histogram in histograms:
        packed += _part(histogram.encode())
    return bytes(packed)


def unpack(packed: bytes) -> IntervalDemand:
    """Read what ``pack`` returned. Raises DamagedError for anything else.

    Names are cut at ``LONGEST_NAME`` characters.
    """
    return _unpack(packed, may_start=True)


def _unpack(packed: bytes, *, may_start: bool) -> IntervalDemand:
    try:
        head, startup, *parts = _parts(packed)
        # Versions before 5 have no waits.
        names, counts, *waits = json.loads(head)
        cpu, run_delay, memory, *ranks = parts
        if startup and not may_start:
            raise DamagedError("a start-up has a start-up")
        if len(ranks) % 2 or len(ranks) > 2 * MOST_RANKS:
            raise DamagedError(f"{len(ranks)} histograms of ranks")
        return IntervalDemand(
            cpu=DemandHistogram.decode(LEAST_CPU, cpu),
            run_delay=DemandHistogram.decode(LEAST_CPU, run_delay),
            memory=DemandHistogram.decode(LEAST_BYTES, memory),
            ranks=[DemandHistogram.decode(LEAST_CPU, used) for used in ranks[::2]],
            rests=[DemandHistogram.decode(LEAST_CPU, rest) for rest in ranks[1::2]],
            names=_names(names),
            counts=_counts(counts),
            waits=_waits(waits[0]) if waits else Waits(),
            startup=_unpack(startup, may_start=False) if startup else None,
        )
    except (ValueError, TypeError, AttributeError, RecursionError, error) as damage:
        raise DamagedError(str(damage)) from damage


def _part(content: bytes) -> bytes:
    if len(content) > MOST_PART_BYTES:
        raise OversizedError(f"a part of {len(content)} bytes does not fit")
    return _LENGTH.pack(len(content)) + content


def _parts(packed: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size
        if at + length > len(packed):
            raise DamagedError("a part is cut off")
        yield packed[at : at + length]
        at += length


def _names(names: object) -> dict[str, int]:
    if not isinstance(names, dict) or len(names) > MOST_NAMES:
        raise DamagedError("the names are no table")
    cut: dict[str, int] = {}
    for name, seconds in names.items():
        short = str(name)[:LONGEST_NAME]
        cut[short] = cut.get(short, 0) + int(_count(seconds))
    return cut


def _waits_as_list(waits: Waits) -> list[object]:
    """Return *waits* for the head, its times in milliseconds at best."""
    groups = {
        name: [round(time.cpu_s, 3), round(time.waited_s, 3)] for name, time in waits.groups.items()
    }
    return [waits.seconds, [round(waited_s, 3) for waited_s in waits.ranked], groups]


def _waits(packed: Sequence[Any]) -> Waits:
    seconds, ranked, groups = packed
    if len(ranked) > MOST_RANKS or len(groups) > MOST_GROUPS:
        raise DamagedError("there are too many waits")
    waits = Waits(int(_count(seconds)), [_count(waited_s) for waited_s in ranked])
    for name, (cpu_s, waited_s) in groups.items():
        waits.groups[str(name)[:LONGEST_NAME]] = GroupTime(_count(cpu_s), _count(waited_s))
    return waits


def _counts(counts: list[float]) -> Counts:
    return Counts(*map(_count, counts))  # type: ignore[arg-type]  # a float in place of an int


def _count(count: object) -> float:
    """Return a counter. Larger ones, and infinite ones, overflow where they are added."""
    if not isinstance(count, (int, float)) or not 0 <= count <= MOST:
        raise DamagedError("a counter is no number that anything here counts to")
    return count
