"""Reads a ``.bpfl``: a BPF object as the instructions of the program that loads it.

The file is a header of 16 bytes (``TBPF`` and three little-endian lengths: description, data,
instructions), the description in JSON, the data and the instructions. ``scripts/build-bpf`` writes
such files from libbpf's light skeletons.
"""

import json
import struct
from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import frozen

from temper_core.errors import BpfError

HEADER = struct.Struct("<4sIII")
MAGIC = b"TBPF"
LARGEST_DESCRIPTION = 1 << 16
LARGEST_DATA = 1 << 24
INSTRUCTION_BYTES = 8
MOST_INSTRUCTIONS = 1_000_000
MOST_MAPS = 64
MOST_PROGRAMS = 32
"""The loading program has room for these numbers of maps and programs (libbpf, gen_loader.c)."""
LONGEST_NAME = 128
LARGEST_NUMBER = (1 << 32) - 1

T = TypeVar("T")


@frozen
class MapInFile:
    """A map of the object. Sizes are in bytes. linux/bpf.h defines ``kind`` and ``flags``.

    ``has_content`` is true for global variables and constants, which can be set at load.
    """

    name: str
    kind: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int
    has_content: bool


@frozen
class ProgramInFile:
    """A program of the object. Its section names the attach point."""

    name: str
    section: str


@frozen
class ObjectFile:
    """The parts of a ``.bpfl``. Maps and programs are in the loading program's order."""

    maps: tuple[MapInFile, ...]
    programs: tuple[ProgramInFile, ...]
    data: bytes
    instructions: bytes


def parse(content: bytes) -> ObjectFile:
    """Parse a ``.bpfl``. Raise ``BpfError`` for any damage."""
    if len(content) < HEADER.size:
        raise _damaged(f"{len(content)} bytes are too few for a header")
    magic, description_size, data, instructions = HEADER.unpack_from(content)
    if magic != MAGIC:
        raise _damaged(f"begins with {magic!r}, not {MAGIC!r}")
    _check_lengths(description_size, data, instructions)
    if HEADER.size + description_size + data + instructions != len(content):
        raise _damaged("its lengths do not add up to the file's")
    description = _description(content[HEADER.size : HEADER.size + description_size])
    start = HEADER.size + description_size
    return ObjectFile(
        maps=_records(description, "maps", MOST_MAPS, _map),
        programs=_records(description, "programs", MOST_PROGRAMS, _program),
        data=content[start : start + data],
        instructions=content[start + data :],
    )


def _check_lengths(description: int, data: int, instructions: int) -> None:
    if description > LARGEST_DESCRIPTION:
        raise _damaged(f"its description is longer than {LARGEST_DESCRIPTION} bytes")
    if not 0 < data <= LARGEST_DATA:
        raise _damaged(f"its data must be 1 to {LARGEST_DATA} bytes, not {data}")
    count, remainder = divmod(instructions, INSTRUCTION_BYTES)
    if remainder or not 0 < count <= MOST_INSTRUCTIONS:
        raise _damaged(f"{instructions} bytes of instructions are not a program")


def _description(text: bytes) -> Mapping[str, object]:
    try:
        description = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"its description is not JSON: {error}") from error
    if not isinstance(description, dict):
        raise _damaged("its description is not an object")
    return description


def _records(
    description: Mapping[str, object],
    key: str,
    most: int,
    read: Callable[[Mapping[str, object]], T],
) -> tuple[T, ...]:
    rows = description.get(key)
    if not isinstance(rows, list) or len(rows) > most:
        raise _damaged(f"{key}: must be a list of at most {most}")
    if not all(isinstance(row, dict) for row in rows):
        raise _damaged(f"{key}: must hold objects")
    if len({_text(row, "name") for row in rows}) < len(rows):
        raise _damaged(f"{key}: a name occurs twice")
    return tuple(read(row) for row in rows)


def _map(row: Mapping[str, object]) -> MapInFile:
    has_content = row.get("has_content")
    if not isinstance(has_content, bool):
        raise _damaged("maps: has_content must be true or false")
    return MapInFile(
        name=_text(row, "name"),
        kind=_number(row, "kind"),
        key_size=_number(row, "key_size"),
        value_size=_number(row, "value_size"),
        max_entries=_number(row, "max_entries"),
        flags=_number(row, "flags"),
        has_content=has_content,
    )


def _program(row: Mapping[str, object]) -> ProgramInFile:
    return ProgramInFile(name=_text(row, "name"), section=_text(row, "section"))


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        raise _damaged(f"{key} must be text of 1 to {LONGEST_NAME} characters")
    return value


def _number(row: Mapping[str, object], key: str) -> int:
    value = row.get(key)
    if type(value) is not int or not 0 <= value <= LARGEST_NUMBER:
        raise _damaged(f"{key} must be a whole number of 32 bits")
    return value


def _damaged(reason: str) -> BpfError:
    return BpfError(f"not a usable BPF object: {reason}")
