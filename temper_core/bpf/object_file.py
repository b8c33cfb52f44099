"""Reads a ``.bpfl``: a BPF object as the instructions of the program that loads it.

A header of 16 bytes (``TBPF`` and three little-endian lengths: description, data, instructions),
the description in JSON, the data, the instructions. ``scripts/build-bpf`` writes such files from
libbpf's light skeletons.
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
"""More than these the loading program has no room for (gen_loader.c of libbpf)."""
LONGEST_NAME = 128
LARGEST_NUMBER = (1 << 32) - 1

T = TypeVar("T")


@frozen
class MapInFile:
    """A map the object brings. Sizes in bytes, ``kind`` and ``flags`` as linux/bpf.h has them.

    ``has_content`` holds for global variables and constants, whose content can be given at load.
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
    """A program the object brings. Its section says what it attaches to."""

    name: str
    section: str


@frozen
class ObjectFile:
    """A ``.bpfl`` taken apart. Maps and programs in the order the loading program knows them."""

    maps: tuple[MapInFile, ...]
    programs: tuple[ProgramInFile, ...]
    data: bytes
    instructions: bytes


def parse(content: bytes) -> ObjectFile:
    """Take a ``.bpfl`` apart. Whatever is wrong with it is one ``BpfError``."""
    if len(content) < HEADER.size:
        raise _damaged(f"{len(content)} bytes are too few for a header")
    magic, described, data, instructions = HEADER.unpack_from(content)
    if magic != MAGIC:
        raise _damaged(f"begins with {magic!r}, not {MAGIC!r}")
    _check_lengths(described, data, instructions)
    if HEADER.size + described + data + instructions != len(content):
        raise _damaged("its lengths do not add up to the file's")
    description = _description(content[HEADER.size : HEADER.size + described])
    start = HEADER.size + described
    return ObjectFile(
        maps=_records(description, "maps", MOST_MAPS, _map),
        programs=_records(description, "programs", MOST_PROGRAMS, _program),
        data=content[start : start + data],
        instructions=content[start + data :],
    )


def _check_lengths(described: int, data: int, instructions: int) -> None:
    if described > LARGEST_DESCRIPTION:
        raise _damaged(f"its description is longer than {LARGEST_DESCRIPTION} bytes")
    if not 0 < data <= LARGEST_DATA:
        raise _damaged(f"its data must be 1 to {LARGEST_DATA} bytes, not {data}")
    count, rest = divmod(instructions, INSTRUCTION_BYTES)
    if rest or not 0 < count <= MOST_INSTRUCTIONS:
        raise _damaged(f"{instructions} bytes of instructions are no program")


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
