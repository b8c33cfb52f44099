"""The wire format of protocol buffers: varints, fields, packed columns, and rows of messages.

https://protobuf.dev/programming-guides/encoding
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "block",
    "column",
    "column_of_steps",
    "number",
    "packed",
    "rows",
    "varint",
]

UINT64 = (1 << 64) - 1
PAYLOAD, MORE = 0x7F, 0x80
"""Bits of a byte of a varint: its part of the value, and whether a byte follows."""
_SINGLE_BYTES = tuple(bytes((value,)) for value in range(MORE))
TWO_BYTES = 1 << 14
"""The first value whose varint has more than two bytes."""
NARROW = 4
"""Bytes of a varint whose value fits into 32 bits."""
Bytes = npt.NDArray[np.uint8]
Cells = tuple[Bytes, npt.NDArray[np.bool_]]
"""Bytes of a column of a table, one row for each message, and which of them are used."""


def varint(value: int) -> bytes:
    """Return *value* as a varint. A negative value is its two's complement in 64 bits."""
    if 0 <= value <= PAYLOAD:
        return _SINGLE_BYTES[value]
    if PAYLOAD < value < TWO_BYTES:
        return bytes((value & PAYLOAD | MORE, value >> 7))
    value &= UINT64
    out = bytearray()
    while value > PAYLOAD:
        out.append(value & PAYLOAD | MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Return a field that holds a varint."""
    return varint(field << 3) + varint(value)


def block(field: int, value: bytes | str) -> bytes:
    """Return a field that holds bytes, a text or a message."""
    content = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def column(field: int, values: npt.NDArray[Any]) -> bytes:
    """Return a packed repeated field of varints. Without values it is absent."""
    return block(field, packed(values)) if len(values) else b""


def column_of_steps(field: int, values: npt.NDArray[Any]) -> bytes:
    """Return a column of the first value, and of each other one's difference from that before."""
    if not len(values):
        return b""
    # The first one is by far the longest, and the slowest of a column decides for all.
    steps = np.diff(values.astype(np.int64))
    return block(field, varint(int(values[0])) + packed(steps))


def packed(values: npt.NDArray[Any]) -> bytes:
    """Return the varints of *values*."""
    bits = _as_uint64(values)
    width = _width(bits)
    if width == 1:
        return bits.astype(np.uint8).tobytes()
    if width <= NARROW:
        return _packed_in_words(bits.astype(np.uint32), width)
    return rows(varint_cells(bits))


def _packed_in_words(values: npt.NDArray[np.uint32], width: int) -> bytes:
    """Return the varints of *values*, which have up to four bytes each: a word of 32 bits."""
    words = values & PAYLOAD
    used = np.ones(len(values), np.uint32)  # a byte for each byte of the word, 1 or 0
    for place in range(1, width):
        is_longer = (values >= 1 << 7 * place).astype(np.uint32)
        part = values & PAYLOAD << 7 * place
        words |= part << place
        words |= is_longer << 8 * place - 1  # a byte follows the one before
        used |= is_longer << 8 * place
    is_used = used.astype("<u4").view(np.bool_)
    return words.astype("<u4").view(np.uint8).take(np.flatnonzero(is_used)).tobytes()


def varint_cells(values: npt.NDArray[Any]) -> Cells:
    """Return the varint of each value in a row of its own."""
    bits = _as_uint64(values)
    width = _width(bits)
    narrow = bits.astype(np.uint32) if width <= NARROW else bits
    content = np.empty((len(bits), width), np.uint8)
    used = np.ones((len(bits), width), np.bool_)
    for place in range(width):
        rest = narrow >> narrow.dtype.type(7 * place)
        content[:, place] = rest  # the cast keeps the lowest 8 bits
        if place:
            used[:, place] = rest != 0
    more = used[:, 1:].view(np.uint8) << 7
    content[:, :-1] = (content[:, :-1] & PAYLOAD) | more
    return content, used


def text_cells(texts: Sequence[str]) -> Cells:
    """Return the UTF-8 of each text in a row of its own."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    width = max(map(len, encoded), default=0)
    content = np.frombuffer(b"".join(text.ljust(width, b"\0") for text in encoded), np.uint8)
    sizes = np.array([len(text) for text in encoded], np.int64)
    return content.reshape(len(encoded), width), np.arange(width) < sizes[:, None]


def constant_cells(content: bytes, count: int) -> Cells:
    """Return *count* rows that all hold *content*."""
    one = np.frombuffer(content, np.uint8)
    return np.broadcast_to(one, (count, len(one))), np.ones((count, len(one)), np.bool_)


def beside(parts: Sequence[Cells]) -> Cells:
    """Return the rows of all *parts* side by side."""
    return (
        np.concatenate([content for content, _ in parts], axis=1),
        np.concatenate([used for _, used in parts], axis=1),
    )


def number_cells(field: int, values: npt.NDArray[Any]) -> Cells:
    """Return a field with a varint for each value."""
    return beside([constant_cells(varint(field << 3), len(values)), varint_cells(values)])


def block_cells(field: int, rows: Cells) -> Cells:
    """Return a field that holds the bytes of each row."""
    sizes = rows[1].sum(axis=1)
    tag = constant_cells(varint(field << 3 | 2), len(sizes))
    return beside([tag, varint_cells(sizes), rows])


def rows(cells: Cells) -> bytes:
    """Return the used bytes of all rows, one after the other."""
    content, used = cells
    return content.ravel().take(np.flatnonzero(used.ravel())).tobytes()


def _width(values: npt.NDArray[np.uint64]) -> int:
    """Return the bytes of the longest varint."""
    return max(1, -(-int(values.max(initial=0)).bit_length() // 7))


def _as_uint64(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    return values.astype(np.int64).view(np.uint64)
