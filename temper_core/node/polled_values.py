"""Values that are read while their key is new, and seldom after that."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar
from zlib import crc32

from attrs import define

Value = TypeVar("Value")

# A new process is a copy of its parent until it executes its own program.
YOUNG_POLLS = 3
POLLS_BETWEEN_READS = 16


@define
class _Entry(Generic[Value]):
    value: Value
    polls: int = 0


class PolledValues(Generic[Value]):
    """Values by key. A poll reads new and young keys and one in sixteen old ones."""

    def __init__(self, read: Callable[[str], Value]) -> None:
        self._read = read
        self._entries: dict[str, _Entry[Value]] = {}
        self._polls = 0

    def refresh(self, keys: Iterable[str]) -> dict[str, Value]:
        """Return the value of every key, and drop all keys outside of *keys*."""
        self._polls += 1
        before, self._entries = self._entries, {}
        for key in keys:
            entry = before.get(key)
            if entry is None:
                entry = _Entry(self._read(key))
            elif self._is_due(key, entry):
                entry.value = self._read(key)
            entry.polls += 1
            self._entries[key] = entry
        return {key: entry.value for key, entry in self._entries.items()}

    def forget(self, keys: Iterable[str]) -> None:
        """Read the values of *keys* again at the next poll."""
        for key in keys:
            self._entries.pop(key, None)

    def _is_due(self, key: str, entry: _Entry[Value]) -> bool:
        if entry.polls < YOUNG_POLLS:
            return True
        return (
            crc32(key.encode(errors="surrogateescape")) + self._polls
        ) % POLLS_BETWEEN_READS == 0
