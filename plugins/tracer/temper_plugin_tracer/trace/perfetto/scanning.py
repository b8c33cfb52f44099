"""Reads fields of protocol buffers out of bytes that may be damaged."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["DamagedError", "fields", "read_varint", "signed", "unpacked"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MOST_VARINT = 10
UINT64 = (1 << 64) - 1
SIGN = 1 << 63
Buffer = Any
"""bytes, a memoryview or an mmap: indexing gives numbers, slicing gives bytes."""
Field = tuple[int, int, int]
"""Number of a field, and its value; or the start and the end of its content for bytes."""


class DamagedError(ValueError):
    """The bytes are no protocol buffer. ``offset`` is where."""

    def __init__(self, offset: int, what: str) -> None:
        self.offset = offset
        self.what = what
        super().__init__(f"at byte {offset}: {what}")


def read_varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """Return a varint and the place after it. Raises DamagedError."""
    value = shift = 0
    start = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - no byte follows
            return value & UINT64, at
        shift += 7
        if at - start == MOST_VARINT:
            raise DamagedError(start, "a varint of more than 10 bytes")
    raise DamagedError(start, "the end within a varint")


def fields(data: Buffer, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message between *at* and *end*. Raises DamagedError.

    A field of bytes has its start and its end in *data*; any other one has its value, and 0.
    """
    while at < end:
        begin = at
        tag, at = read_varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = read_varint(data, at, end)
            yield number, value, 0
            continue
        if kind == BYTES:
            size, at = read_varint(data, at, end)
        elif kind in {FIXED64, FIXED32}:
            size = 8 if kind == FIXED64 else 4
        else:
            raise DamagedError(begin, f"a field of the unknown wire type {kind}")
        if number == 0:
            raise DamagedError(begin, "a field with the number 0")
        if at + size > end:
            raise DamagedError(begin, f"a field of {size} bytes exceeds its message")
        if kind == BYTES:
            yield number, at, at + size
        at += size


def signed(value: int) -> int:
    """Return the number whose two's complement in 64 bits is *value*."""
    return value - (1 << 64) if value & SIGN else value


def unpacked(data: Buffer, at: int, end: int) -> npt.NDArray[np.uint64]:
    """Return the varints of a packed field. Raises DamagedError."""
    content = np.frombuffer(data[at:end], np.uint8)
    if not len(content):
        return np.empty(0, np.uint64)
    ends = np.flatnonzero(content < 0x80)  # noqa: PLR2004 - no byte follows
    if not len(ends) or ends[-1] != len(content) - 1:
        raise DamagedError(at, "the end within a varint")
    if len(ends) == len(content):
        return content.astype(np.uint64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    if sizes.max() > MOST_VARINT:
        raise DamagedError(at, "a varint of more than 10 bytes")
    values: npt.NDArray[np.uint64] = (content[starts] & 0x7F).astype(np.uint64)
    rest = np.flatnonzero(sizes > 1)
    for place in range(1, int(sizes.max())):
        rest = rest[sizes[rest] > place]
        part = (content[starts[rest] + place] & 0x7F).astype(np.uint64)
        values[rest] |= part << np.uint64(7 * place)
    return values
