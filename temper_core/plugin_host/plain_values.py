"""Values of plugins as plain ones: rebuilt from exact types, so that they run no code of a plugin.

A subclass of ``str`` may have a ``__hash__`` that sleeps, one of ``int`` a ``__format__`` that
lies, and a record may be of a subclass or have unchecked fields. The copy holds only exact types of
the language and records of the core, whose validators have judged the copied fields. It is made in
the plugin's thread, within its deadline. Types are compared by identity and by the interpreter's
own order of bases, because ``__class__`` and metaclasses may lie.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, TypeVar

import attrs
from attrs import define, frozen

from temper_core.records import (
    checks,
    contributions,
    declarations,
    endpoints,
    events,
    histogram,
    instruments,
    invariants,
    lint,
    pods,
    profile_evidence,
    profiles,
    thread_groups,
    tiers,
    traits,
)

MOST_ITEMS = 100_000
"""Items of one list."""
MOST_VALUES = 1_000_000
"""Values of one copy, all levels together: a list of lists may repeat one list without end."""
DEEPEST = 32
LONGEST_NAME = 100
LARGEST_INTEGER_BITS = 1024
"""A larger integer is infinity for readers whose numbers are doubles, and slow to write."""

Item = TypeVar("Item")

_MODULES = (
    checks,
    contributions,
    declarations,
    endpoints,
    events,
    histogram,
    instruments,
    invariants,
    lint,
    pods,
    profile_evidence,
    profiles,
    thread_groups,
    traits,
)
_OPAQUE = frozenset(
    {"answer", "check", "collect", "detect", "devices", "load", "model", "open", "options"}
    | {"stream"}
)
"""Fields of records that hold a function, a class or an iterator. They are called under guard."""


def plain_text(value: Any) -> str:  # noqa: ANN401 - of any type
    """Return *value* as an exact str. Raise TypeError unless it is a str."""
    if type(value) is str:
        return value
    if issubclass(type(value), str):
        return str.__str__(value)
    raise TypeError(f"{kind_of(value)} is no text")


def plain_int(value: Any) -> int:  # noqa: ANN401 - of any type
    """Return *value* as an exact int or bool. Raise TypeError unless it is an int."""
    if not issubclass(type(value), int):
        raise TypeError(f"{kind_of(value)} is no integer")
    number = value if type(value) is int or type(value) is bool else int.__index__(value)
    if number.bit_length() > LARGEST_INTEGER_BITS:
        raise ValueError(f"an integer of {number.bit_length()} bits is too large")
    return number


def plain_float(value: Any) -> float:  # noqa: ANN401 - of any type
    """Return *value* as an exact float. Raise TypeError unless it is a float."""
    if type(value) is float:
        return value
    if issubclass(type(value), float):
        return float.__float__(value)
    raise TypeError(f"{kind_of(value)} is no number")


def plain_bytes(value: Any) -> bytes:  # noqa: ANN401 - of any type
    """Return *value* as exact bytes. Raise TypeError unless it is bytes or a bytearray."""
    if type(value) is bytes:
        return value
    for kind in (bytes, bytearray):
        if issubclass(type(value), kind):
            return bytes(kind.__getitem__(value, slice(None)))
    raise TypeError(f"{kind_of(value)} is no bytes")


def plain_record(record: object, kind: type[Item]) -> Item:
    """Return *record* rebuilt. Raise TypeError unless it is a *kind*, and a record of the core."""
    if not is_record(record, kind):
        raise TypeError(f"{kind_of(record)} is no {kind.__name__}")
    copy: Item = plain_value(record)
    return copy


def is_record(value: object, kind: type[Any]) -> bool:
    """Whether *value* is of *kind*, or of a subclass, and of a record class of the core."""
    return id(type(value)) in _SHAPES and issubclass(type(value), kind)


def plain_value(value: object) -> Any:  # noqa: ANN401 - of any type
    """Return a copy of *value* of plain types. Raise TypeError or ValueError if it has none."""
    return _Copy().of(value)


def shown(value: object) -> str:
    """Return *value* for a message: a short text or a number as it is written, or its type.

    The ``repr`` of anything else may be without end.
    """
    if type(value) is str:
        return repr(value[:LONGEST_NAME])
    if id(type(value)) in _UNCHANGED:
        return repr(value)[:LONGEST_NAME]
    is_short = type(value) is int and value.bit_length() <= LARGEST_INTEGER_BITS
    return repr(value)[:LONGEST_NAME] if is_short else f"a {kind_of(value)}"


@define(eq=False)
class _Copy:
    """One copy, bounded in depth and in the number of values."""

    _left: int = MOST_VALUES
    _depth: int = 0

    def of(self, value: Any) -> Any:  # noqa: ANN401 - of any type
        kind = type(value)
        if id(kind) in _UNCHANGED or id(value) in _MEMBERS:
            return value
        shape = _SHAPES.get(id(kind))
        if shape is not None:
            self._enter(len(shape.fields))
            given = {}
            for name, argument, is_opaque in shape.fields:
                inner = getattr(value, name)
                is_kept = is_opaque or id(type(inner)) in _UNCHANGED or id(inner) in _MEMBERS
                given[argument] = inner if is_kept else self.of(inner)
            self._depth -= 1
            return shape.kind(**given)
        exactly = _EXACT.get(id(kind))
        if exactly is not None:
            return exactly(self, value)
        for base, copied in _BASES:
            if issubclass(kind, base):
                return copied(self, value)
        return self._other(value, kind)

    def _list(self, items: Iterator[Any]) -> list[Any]:
        copied = list(islice(items, MOST_ITEMS + 1))
        if not copied:
            return copied
        self._enter(len(copied))
        if all(id(type(item)) in _UNCHANGED for item in copied):
            copy = copied
        else:
            copy = [self.of(item) for item in copied]
        self._depth -= 1
        return copy

    def _mapping(self, pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        items = list(islice(pairs, MOST_ITEMS + 1))
        if not items:
            return {}
        self._enter(2 * len(items))
        if all(type(key) is str and id(type(inner)) in _UNCHANGED for key, inner in items):
            copy = dict(items)
        else:
            copy = {self._key(key): self.of(inner) for key, inner in items}
        self._depth -= 1
        return copy

    def _key(self, key: object) -> Any:  # noqa: ANN401 - a scalar
        if any(issubclass(type(key), kind) for kind in (str, int, float, type(None))):
            return self.of(key)
        raise TypeError(f"{kind_of(key)} is no key of a plain mapping")

    def _other(self, value: Any, kind: type[Any]) -> Any:  # noqa: ANN401 - of any type
        if hasattr(kind, "keys") and hasattr(kind, "__getitem__"):
            return self._mapping((key, value[key]) for key in value.keys())  # noqa: SIM118 - no dict
        if hasattr(kind, "__iter__"):
            return tuple(self._list(iter(value)))
        raise TypeError(f"{kind_of(value)} is no plain value")

    def _enter(self, values: int) -> None:
        self._left -= values
        self._depth += 1
        if values > 2 * MOST_ITEMS or self._left < 0:
            raise ValueError(f"more than {MOST_ITEMS} items in a list, or {MOST_VALUES} in all")
        if self._depth > DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST} levels")


@frozen
class _Shape:
    """A record: its class, and of each field the name, the argument and whether it is opaque."""

    kind: type[Any]
    fields: Sequence[tuple[str, str, bool]]


def _shape(kind: type[Any]) -> _Shape:
    fields = [field for field in attrs.fields(kind) if field.init]
    return _Shape(kind, [(field.name, field.alias, field.name in _OPAQUE) for field in fields])


def kind_of(value: object) -> str:
    """Return the name of the type of *value*. A metaclass may have a ``__name__`` of its own."""
    return plain_text(type.__dict__["__name__"].__get__(type(value)))[:LONGEST_NAME]


_UNCHANGED = frozenset(map(id, (str, float, bool, type(None), bytes)))
_SHAPES: Mapping[int, _Shape] = {
    id(kind): _shape(kind)
    for module in _MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and attrs.has(kind) and kind.__module__ == module.__name__
}
_MEMBERS = frozenset(
    id(member)
    for module in (*_MODULES, tiers)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Enum)
    for member in kind
)
_BASES: Sequence[tuple[type[Any], Callable[[_Copy, Any], Any]]] = (
    (str, lambda _, value: plain_text(value)),
    (int, lambda _, value: plain_int(value)),
    (float, lambda _, value: plain_float(value)),
    (bytes, lambda _, value: plain_bytes(value)),
    (bytearray, lambda _, value: plain_bytes(value)),
    (tuple, lambda copy, value: tuple(copy._list(tuple.__iter__(value)))),  # noqa: SLF001
    (list, lambda copy, value: copy._list(list.__iter__(value))),  # noqa: SLF001
    (dict, lambda copy, value: copy._mapping(dict.items(value))),  # noqa: SLF001
    (PurePath, lambda _, value: Path(plain_text(value.__fspath__()))),
)
_EXACT = {id(base): copied for base, copied in _BASES}
