"""Reads the descriptions that tracefs gives of events and of the pages of its buffers."""

import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from temper_core import MachineError

_FIELD = re.compile(
    r"field: ?(?P<type>[^;]*?)(?P<name>\w+)(?:\[\d*\])?;"
    r"\s*offset:(?P<offset>\d+);\s*size:(?P<size>\d+);"
)
_ID = re.compile(r"^ID: (\d+)$", re.MULTILINE)
_DATA_LOCATION = "__data_loc"
WORD = 4


@frozen
class Field:
    """The position of a field of an event.

    Attributes:
        is_located: Whether the field holds offset and length of its content, and not the content.

    """

    offset: int
    size: int
    is_located: bool = False


@frozen
class EventFormat:
    """The number of an event in this kernel, and its fields."""

    id: int
    fields: Mapping[str, Field]

    def word_of(self, name: str) -> int:
        """Return the place of a number's lowest 32 bits. Raise MachineError without it."""
        field = self.fields.get(name)
        if field is None or field.offset % WORD or field.is_located:
            raise MachineError(f"event {self.id} of tracefs has no number {name!r}")
        return field.offset // WORD


@frozen
class PageFormat:
    """The pages of a buffer: the places of its head, in words of 32 bits, and the size."""

    commit: int
    data: int
    words: int

    @property
    def bytes(self) -> int:
        """The size of a page."""
        return self.words * WORD


def read_event(instance: Path, event: str) -> EventFormat:
    """Read the format of ``system/event``. Raises OSError, MachineError."""
    text = (instance / "events" / event / "format").read_text()
    found = _ID.search(text)
    if found is None:
        raise MachineError(f"{instance}/events/{event}/format has no ID")
    return EventFormat(int(found[1]), _fields(text))


def read_pages(tracefs: Path) -> PageFormat:
    """Read the format of the pages. Raises OSError, MachineError."""
    path = tracefs / "events/header_page"
    fields = _fields(path.read_text())
    if not {"timestamp", "commit", "data"} <= set(fields) or fields["timestamp"].offset:
        raise MachineError(f"{path} describes pages that are not known")
    data = fields["data"]
    return PageFormat(
        commit=fields["commit"].offset // WORD,
        data=data.offset // WORD,
        words=(data.offset + data.size) // WORD,
    )


def _fields(text: str) -> dict[str, Field]:
    return {
        found["name"]: Field(
            int(found["offset"]), int(found["size"]), _DATA_LOCATION in found["type"]
        )
        for found in _FIELD.finditer(text)
    }
