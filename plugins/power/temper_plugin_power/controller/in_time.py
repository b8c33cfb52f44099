"""Ends a series of writes in time, so that one part of a cycle delays no other for long."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

WRITES_S = 20.0
"""Of one kind of objects in a cycle. The next one writes the others."""
_Item = TypeVar("_Item")


def in_time(items: Iterable[_Item], clock: Callable[[], float]) -> Iterator[_Item]:
    """Yield *items* until ``WRITES_S`` seconds have passed."""
    until = clock() + WRITES_S
    for item in items:
        if clock() >= until:
            return
        yield item
