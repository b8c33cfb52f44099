"""Read single fields of a Kubernetes object, and record every field of a wrong type."""

from collections.abc import Callable, Iterator, Mapping
from reprlib import Repr
from typing import Any

from attrs import define, field

from temper_core.errors import InputError

NO_TABLE: Mapping[str, Any] = {}


def _brief_repr() -> Repr:
    brief = Repr()
    # YAML's aliases can make a small document's repr endless.
    brief.maxlevel, brief.maxdict, brief.maxlist, brief.maxstring = 2, 2, 2, 60
    return brief


_shown = _brief_repr().repr


@define  # thousands are made for one PodList, and a frozen record takes twice as long to make
class JsonObject:
    """One JSON object and its path. ``problems`` and ``doubts`` are shared by the whole document.

    ``doubts`` are the quantities that cannot be read, and count as 0. Every reader returns a
    neutral value for a field that is missing, null, or of the wrong type.
    """

    values: Mapping[str, Any]
    path: str
    problems: list[str] = field(repr=False)
    doubts: list[str] = field(repr=False)

    def complain(self, key: str, problem: str) -> None:
        """Record *problem* of the field *key*."""
        self.problems.append(f"{self._path_of(key)}: {problem}")

    def _path_of(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _wrong(self, key: str, noun: str) -> None:
        self.complain(key, f"must be {noun}, not {_shown(self.values[key])}")

    def text(self, key: str) -> str:
        """Return a string, empty if it is missing."""
        value = self.values.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong(key, "a string")
            return ""
        return value

    def whole_number(self, key: str) -> int | None:
        """Return a whole number, or ``None``."""
        value = self.values.get(key)
        if value is not None and type(value) is not int:
            self._wrong(key, "a whole number")
            return None
        return value

    def is_true(self, key: str) -> bool:
        """Return a boolean, false if it is missing."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            self._wrong(key, "true or false")
        return value is True

    def table(self, key: str) -> "JsonObject":
        """Return the object below *key*, empty if it is missing."""
        value = self.values.get(key)
        if value is None:
            value = NO_TABLE
        elif not isinstance(value, dict):
            self._wrong(key, "an object")
            value = NO_TABLE
        return JsonObject(value, self._path_of(key), self.problems, self.doubts)

    def tables(self, key: str, most: int | None = None) -> "Iterator[JsonObject]":
        """Yield the objects of the list below *key*, the first *most* of them."""
        value = self.values.get(key)
        if value is None:
            return
        if not isinstance(value, list):
            self._wrong(key, "a list")
            return
        path = self._path_of(key)
        for index, item in enumerate(value[:most]):
            if isinstance(item, dict):
                yield JsonObject(item, f"{path}[{index}]", self.problems, self.doubts)
            else:
                self.problems.append(f"{path}[{index}]: must be an object, not {_shown(item)}")

    def strings(self, key: str) -> Mapping[str, str]:
        """Return a mapping of strings, as labels and annotations are."""
        problems_before = len(self.problems)
        inner = self.table(key)
        for name, value in inner.values.items():
            if not isinstance(value, str) or not isinstance(name, str):
                inner.complain(str(name), f"must be a string, not {_shown(value)}")
        return inner.values if len(self.problems) == problems_before else {}

    def quantity(self, key: str, read: Callable[[object], int]) -> int | None:
        """Return a Kubernetes quantity in the units of *read*, or ``None`` if it is missing.

        One that cannot be read is a doubt and 0. A missing request would default to the limit.
        """
        value = self.values.get(key)
        if value is None:
            return None
        try:
            return read(value)
        except InputError as error:
            self.doubts.append(f"{self._path_of(key)}: {error}")
            return 0
