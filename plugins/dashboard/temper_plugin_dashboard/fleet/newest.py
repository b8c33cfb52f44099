"""The newest of many records, with no more than those in memory."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from attrs import define, field

Record = TypeVar("Record")


@define
class Newest(Generic[Record]):
    """Keeps the *most* records with the greatest *age_of*. One with a known key replaces that one.

    Any account that may create objects decides how many there are.
    """

    most: int
    age_of: Callable[[Record], Any]
    total: int = field(default=0, init=False)
    """How many were added, whether kept or not. A second list may add one twice."""
    _kept: dict[Hashable, Record] = field(factory=dict, init=False)

    def add(self, key: Hashable, record: Record) -> None:
        """Add one, and forget the oldest above *most*."""
        self.total += 1
        self._kept[key] = record
        if len(self._kept) > self.most:
            del self._kept[min(self._kept, key=lambda each: self.age_of(self._kept[each]))]

    def sorted(self) -> list[Record]:
        """Return them, the newest first."""
        return sorted(self._kept.values(), key=self.age_of, reverse=True)
