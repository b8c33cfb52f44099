"""Figures of the node over the last windows, for the page's charts."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from attrs import astuple, fields, frozen

from temper_core import Snapshot

MOST_POINTS = 720
"""An hour of windows of 5 s."""


@frozen
class Point:
    """The node in one window.

    Attributes:
        at: When the window ended, in seconds since 1970.
        cpu_used: CPU time of the listed threads in the window, in CPUs.
        pods_cpu_used: CPU time of all pods in the window, in CPUs.
        cpu_pressure: Share of the last 10 s in which a task waited for a CPU. None without PSI.
        violations: The number of current violations.
        overhead: CPU time of the agent in the window, in CPUs.

    """

    at: float
    cpu_used: float
    pods_cpu_used: float
    cpu_pressure: float | None
    violations: int
    overhead: float


class History:
    """Keeps the newest ``MOST_POINTS`` points."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=MOST_POINTS)

    def add(self, snapshot: Snapshot) -> None:
        """Add the window of a *snapshot*. The baseline has no rates and is left out."""
        if snapshot.window_s > 0:
            self._points.append(_point(snapshot))

    def document(self, since: float = 0.0) -> Mapping[str, Any]:
        """Return the points after *since* by column, oldest first."""
        rows = [astuple(point) for point in tuple(self._points) if point.at > since]
        names = [each.name for each in fields(Point)]
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return dict(zip(names, map(list, columns), strict=True))


def _point(snapshot: Snapshot) -> Point:
    cpu = snapshot.pressure.get("cpu")
    return Point(
        round(snapshot.at, 3),
        round(sum(thread.cpu_used for thread in snapshot.threads), 4),
        round(sum(pod.cpu_used for pod in snapshot.pods), 4),
        None if cpu is None else cpu.some.avg10,
        len(snapshot.violations),
        round(sum(snapshot.overhead.cpu_ratio.values()), 6),
    )
