"""Wake-ups and waits for a CPU in one watched window.

The section ``tracer`` of a snapshot holds a window. ``read_wake_window`` reads it.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from temper_core.records.snapshots import Section

SECTION = "tracer"
SECTION_VERSION = 1


@frozen
class Party:
    """A thread of an edge or a blocking. ``pod`` is ``namespace/name``, empty outside of pods.

    ``tid`` is 0 for an interrupt that woke a thread, and for an idle CPU that a thread waited for.
    """

    tid: int
    comm: str
    process: str = ""
    pod: str = ""
    layer: str = ""


@frozen
class WakeEdge:
    """The number of times that ``waker`` woke ``wakee`` in the window."""

    waker: Party
    wakee: Party
    wakes: int


@frozen
class Blocking:
    """The waits of ``waiter`` for a CPU that ``runner`` used meanwhile.

    ``waits`` is their number, and ``waited_s`` the seconds for which ``runner`` had the CPU.
    """

    waiter: Party
    runner: Party
    waits: int
    waited_s: float


@frozen
class WaitHistogram:
    """A histogram of waits for a CPU. ``counts[n]`` is the number under ``2**n`` microseconds.

    The last count has all longer waits, and ``total_s`` is the sum of all waits in seconds.
    ``subject`` is a pod, ``layer NAME`` or ``node``.
    """

    subject: str
    counts: tuple[int, ...]
    total_s: float = 0.0


@frozen
class WakeWindow:
    """One window in which every wake-up and switch was watched.

    ``at`` is the wall-clock time of its end, in seconds since the epoch. ``every_s`` is the time to
    the next window, as the budget allows. ``switches_per_s`` is the rate from which ``length_s``
    was chosen. ``lost`` is the number of edges and blockings that found no room.
    """

    at: float
    length_s: float
    every_s: float
    switches_per_s: float
    edges: tuple[WakeEdge, ...] = ()
    blockings: tuple[Blocking, ...] = ()
    waits: tuple[WaitHistogram, ...] = ()
    lost: int = 0


def read_wake_window(section: Section | None) -> WakeWindow | None:
    """Return the window in *section*, or None if it has none or an unreadable one."""
    if section is None or section.schema_version != SECTION_VERSION:
        return None
    try:
        return _window(section.content)
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None


def _window(content: Mapping[str, Any]) -> WakeWindow:
    length_s = _number(content["length_s"])
    if not length_s:
        raise ValueError("a window without a length")
    return WakeWindow(
        at=_moment(content["at"]),
        length_s=length_s,
        every_s=_number(content["every_s"]),
        switches_per_s=_number(content["switches_per_s"]),
        edges=tuple(
            WakeEdge(_party(edge["waker"]), _party(edge["wakee"]), _count(edge["wakes"]))
            for edge in content["edges"]
        ),
        blockings=tuple(
            Blocking(
                _party(blocking["waiter"]),
                _party(blocking["runner"]),
                _count(blocking["waits"]),
                _number(blocking["waited_s"]),
            )
            for blocking in content["blockings"]
        ),
        waits=tuple(
            WaitHistogram(
                _text(histogram["subject"]),
                tuple(map(_count, histogram["counts"])),
                _number(histogram["total_s"]),
            )
            for histogram in content["waits"]
        ),
        lost=_count(content["lost"]),
    )


def _party(party: Mapping[str, Any]) -> Party:
    names = (_text(party[key]) for key in ("comm", "process", "pod", "layer"))
    return Party(_count(party["tid"]), *names)


def _moment(value: object) -> float:
    """Read wall-clock seconds, or RFC 3339."""
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else _number(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    if not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is out of range")
    return float(value)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
