"""Follows the objects of one kind, and puts a record of each into the cluster.

Objects are read on the watch's thread. Records are put on the event loop's thread.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import structlog
from attrs import define, field

from temper_plugin_power.resources.fields import text_at

MOST_OBJECTS = 200_000
"""Of one kind. A user with the right to create profiles may create any number of them."""

Object = Mapping[str, Any]
Key = TypeVar("Key")
Value = TypeVar("Value")
Call = Callable[..., object]
"""Calls a function with its arguments on the thread of the records."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define(eq=False)
class Records(Generic[Key, Value]):
    """The records of the objects of one kind. *put* takes a key and a value, or None to remove."""

    kind: str
    put: Callable[[Key, Value | None], object]
    _keys: dict[str, Key] = field(factory=dict, init=False)
    _is_told: bool = field(default=False, init=False)

    def replace(self, records: Mapping[str, tuple[Key, Value]]) -> None:
        """Replace all records, by the names of their objects."""
        for name in [name for name in self._keys if name not in records]:
            self.change(name, None)
        for name, record in records.items():
            self.change(name, record)

    def change(self, name: str, record: tuple[Key, Value] | None) -> None:
        """Replace the record of the object *name*. None removes it."""
        known = self._keys.get(name)
        if known is not None and (record is None or record[0] != known):
            self.put(known, None)
            del self._keys[name]
        if record is None or (known is None and self._is_full()):
            return
        self._keys[name] = record[0]
        self.put(*record)

    def _is_full(self) -> bool:
        is_full = len(self._keys) >= MOST_OBJECTS
        if is_full and not self._is_told:
            log.warning("objects_left_out", kind=self.kind, limit=MOST_OBJECTS)
            self._is_told = True
        return is_full


@define(eq=False)
class Follower(Generic[Key, Value]):
    """Keeps *records* up to date. *read* returns None for an object without a record."""

    records: Records[Key, Value]
    read: Callable[[Object], tuple[Key, Value] | None]
    call: Call

    def replaced(self, items: Iterable[Object]) -> None:
        """Replace all records. Nothing changes if the list does not come to its end."""
        read = {_name(item): self.read(item) for item in items}
        found = {name: record for name, record in read.items() if record is not None}
        self.call(self.records.replace, found)

    def changed(self, kind: str, item: Object) -> None:
        """Record an object that was added, modified or deleted."""
        record = None if kind == "DELETED" else self.read(item)
        self.call(self.records.change, _name(item), record)

    def status_changed(self) -> None:
        """Nothing depends on whether the watch is up: what is known is kept."""


def _name(item: Object) -> str:
    return f"{text_at(item, 'metadata.namespace')}/{text_at(item, 'metadata.name')}"
