"""Records of the objects of one kind, as a watch of the API server keeps them."""

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import structlog

from temper_core import InputError
from temper_kube.bounded_warnings import BoundedWarnings
from temper_kube.failures import MALFORMED
from temper_kube.list_pages import Json
from temper_plugin_power.resources.fields import text_at

MOST_OBJECTS = 200_000
"""More are not kept: a user with the right to create objects may create any number."""

Record = TypeVar("Record")
Key = tuple[str, str]
"""Namespace and name."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class KnownObjects(Generic[Record]):
    """The records of a collection, by namespace and name. Any thread may read them.

    *read* returns the record of an object, None for one that is not kept. *noted* is called after
    each change, with the record before and after it. A malformed object is left out with a warning.
    """

    def __init__(
        self,
        read: Callable[[Json], Record | None],
        noted: Callable[[Record | None, Record | None], object] = lambda _before, _after: None,
    ) -> None:
        self._read = read
        self._noted = noted
        self._records: dict[Key, Record] = {}
        self._lock = threading.Lock()
        self._warnings = BoundedWarnings()

    def records(self) -> list[Record]:
        """Return all records, as they are now."""
        with self._lock:
            return list(self._records.values())

    def find(self, namespace: str, name: str) -> Record | None:
        """Return the record of that name, None without one."""
        with self._lock:
            return self._records.get((namespace, name))

    def replaced(self, items: Iterable[Json]) -> None:
        """Replace all objects."""
        found: dict[Key, Record] = {}
        for item in items:
            record = self._recorded(item)
            if record is not None and len(found) < MOST_OBJECTS:
                found[_key(item)] = record
        with self._lock:
            before, self._records = self._records, found
        for key in before.keys() | found.keys():
            self._noted(before.get(key), found.get(key))

    def changed(self, kind: str, item: Json) -> None:
        """Record that an object was added, modified or deleted."""
        self.put(item) if kind != "DELETED" else self.drop(*_key(item))

    def status_changed(self) -> None:
        """Nothing here depends on whether the watch is up."""

    def put(self, item: Json) -> None:
        """Record an object as it is now."""
        key, record = _key(item), self._recorded(item)
        if record is None:
            self.drop(*key)
            return
        with self._lock:
            before = self._records.get(key)
            if before is None and len(self._records) >= MOST_OBJECTS:
                return
            self._records[key] = record
        self._noted(before, record)

    def drop(self, namespace: str, name: str) -> None:
        """Record that an object is gone."""
        with self._lock:
            before = self._records.pop((namespace, name), None)
        if before is not None:
            self._noted(before, None)

    def _recorded(self, item: Json) -> Record | None:
        try:
            return self._read(item)
        except (InputError, *MALFORMED) as error:
            namespace, name = _key(item)
            if self._warnings.allows(namespace):
                why = str(error)[:200]
                log.warning("object_not_read", namespace=namespace, name=name, reason=why)
            return None


def _key(item: Json) -> Key:
    return text_at(item, "metadata.namespace"), text_at(item, "metadata.name")
