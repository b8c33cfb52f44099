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
    "differences",
    "number",
    "packed",
    "rows",
    "varint",
]

UINT64 = (1 << 64) - 1
PAYLOAD, MORE = 0x7F, 0x80
"""Bits of a byte of a varint: its part of the value, and whether a byte follows."""
NARROW = 4
"""Bytes of a varint whose value fits into 32 bits."""
Bytes = npt.NDArray[np.uint8]
Cells = tuple[Bytes, npt.NDArray[np.bool_]]
"""Bytes of a column of a table, one row for each message, and which of them are used."""


def varint(value: int) -> bytes:
    """Return *value* as a varint. A negative value is its two's complement in 64 bits."""
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


def differences(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the first value, and the difference of each other one from the value before it."""
    steps = values.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    return steps


def packed(values: npt.NDArray[Any]) -> bytes:
    """Return the varints of *values*."""
    content, used = varint_cells(values)
    if content.shape[1] == 1:
        return content.tobytes()
    return content[used].tobytes()


def varint_cells(values: npt.NDArray[Any]) -> Cells:
    """Return the varint of each value in a row of its own."""
    bits = _as_uint64(values)
    width = max(1, -(-int(bits.max(initial=0)).bit_length() // 7))
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
    content = np.frombuffer(b"".join(each.ljust(width, b"\0") for each in encoded), np.uint8)
    sizes = np.array([len(each) for each in encoded], np.int64)
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
    return content[used].tobytes()


def _as_uint64(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    return values.astype(np.int64).view(np.uint64)
