"""How long threads waited in the run queue: by rank, and by the family of their name."""

from collections.abc import Mapping

from attrs import define, field, frozen

MOST_GROUPS = 8
"""Name families that are kept, those with the most CPU time and waits."""


@frozen
class WindowWaits:
    """The waits of a container's threads in one window.

    ``ranked`` has the share of the window in which each of the busiest threads waited. ``groups``
    has, by name family, the CPUs of all its threads and the sum of these shares.
    """

    ranked: tuple[float, ...]
    groups: Mapping[str, tuple[float, float]]


@define
class GroupTime:
    """CPU time and run-queue wait of the threads of one name family, in thread-seconds."""

    cpu_s: float = 0.0
    waited_s: float = 0.0


@define
class Waits:
    """Run-queue waits over an interval, or over many.

    ``seconds`` is the measured time in which they are known. ``ranked[k]`` is how long the (k+1)-th
    busiest thread waited, in seconds. ``groups`` has the time of each name family.
    """

    seconds: int = 0
    ranked: list[float] = field(factory=list)
    groups: dict[str, GroupTime] = field(factory=dict)

    def add(self, window: WindowWaits, seconds: int) -> None:
        """Add a window of *seconds*."""
        self.seconds += seconds
        self._add_ranked([share * seconds for share in window.ranked])
        for name, (cpus, waiting) in window.groups.items():
            self._add_group(name, GroupTime(cpus * seconds, waiting * seconds))
        self._bound()

    def merge(self, other: "Waits") -> None:
        """Add *other*, of another time or another replica."""
        self.seconds += other.seconds
        self._add_ranked(other.ranked)
        for name, time in other.groups.items():
            self._add_group(name, time)
        self._bound()

    def _add_ranked(self, waited_s: list[float]) -> None:
        self.ranked += [0.0] * (len(waited_s) - len(self.ranked))
        for rank, time in enumerate(waited_s):
            self.ranked[rank] += time

    def _add_group(self, name: str, time: GroupTime) -> None:
        group = self.groups.setdefault(name, GroupTime())
        group.cpu_s += time.cpu_s
        group.waited_s += time.waited_s

    def _bound(self) -> None:
        if len(self.groups) > MOST_GROUPS:
            kept = sorted(self.groups.items(), key=lambda each: -each[1].cpu_s - each[1].waited_s)
            self.groups = dict(kept[:MOST_GROUPS])
