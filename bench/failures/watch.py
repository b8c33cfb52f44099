"""Watches which scheduler the kernel has, on the clock of the request server."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from attrs import frozen

from bench.ladder.kernel import SCHED_EXT, Scheduler, scheduler

PERIOD_S = 0.005
ENABLED = "enabled"


@frozen
class Change:
    """The kernel's scheduler from ``at_s`` on, a time of CLOCK_MONOTONIC in seconds."""

    at_s: float
    is_engine: bool
    attaches: int


class SchedulerWatch:
    """Looks at the kernel's scheduler every 5 ms. ``with`` begins and ends the looks."""

    def __init__(
        self, sched_ext: Path = SCHED_EXT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sched_ext, self._clock = sched_ext, clock
        self._changes = [self._look()]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="scheduler-watch")

    @property
    def changes(self) -> Sequence[Change]:
        """What was seen: the first look, and each look that differs from the one before."""
        return tuple(self._changes)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            seen, last = self._look(), self._changes[-1]
            if (seen.is_engine, seen.attaches) != (last.is_engine, last.attaches):
                self._changes.append(seen)

    def _look(self) -> Change:
        now: Scheduler = scheduler(self._sched_ext)
        return Change(self._clock(), now.state == ENABLED, now.attaches)


@frozen
class Timeline:
    """When the engine went and came back, of looks from before a failure until after it.

    All times are in seconds since the failure. ``stock_after_s`` is the time to the stock
    scheduler, ``back_after_s`` the time until an engine is attached for the last time, and
    ``stock_s`` the time that the stock scheduler had in all. The first two are None where the
    engine never went.
    """

    stock_after_s: float | None
    back_after_s: float | None
    stock_s: float
    attaches: int

    @classmethod
    def of(cls, changes: Sequence[Change], struck_s: float, ended_s: float) -> Self:
        """Read the changes of a failure at ``struck_s``, of which the last look is ``ended_s``."""
        spans = list(stock_spans(changes, ended_s))
        after = [(begin, end) for begin, end in spans if end > struck_s]
        return cls(
            round(after[0][0] - struck_s, 3) if after else None,
            round(after[-1][1] - struck_s, 3) if after and after[-1][1] < ended_s else None,
            round(sum(end - begin for begin, end in after), 3),
            changes[-1].attaches - changes[0].attaches,
        )


def stock_spans(changes: Sequence[Change], ended_s: float) -> list[tuple[float, float]]:
    """Return begin and end of each time of the stock scheduler, with neighbours as one."""
    spans: list[tuple[float, float]] = []
    ends = [*(each.at_s for each in changes[1:]), ended_s]
    for change, end in zip(changes, ends, strict=True):
        if change.is_engine:
            continue
        if spans and spans[-1][1] == change.at_s:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((change.at_s, end))
    return spans
