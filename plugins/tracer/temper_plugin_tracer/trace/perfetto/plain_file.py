"""Opens a trace as plain bytes: decompresses gzip, and packets that Perfetto compressed."""

import mmap
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from temper_core import InputError, open_file
from temper_plugin_tracer.trace.perfetto.fields import TRACE_PACKET, Packet
from temper_plugin_tracer.trace.perfetto.scanning import Buffer, fields
from temper_plugin_tracer.trace.perfetto.wire import block

__all__ = ["map_plain", "map_with_packets_expanded"]

GZIP = b"\x1f\x8b"
GZIP_WINDOW = 16 + zlib.MAX_WBITS
PIECE = 1 << 20
MOST_BYTES = 4 << 30
"""Decompressed size at which a file is refused. It lies in the folder of temporary files."""


def map_plain(path: Path) -> tuple[Buffer, str]:
    """Return the bytes of *path*, decompressed, and what cut them short, if anything.

    Raises InputError.
    """
    try:
        with open_file(path) as file:
            if file.read(len(GZIP)) != GZIP:
                return _map(file), ""
            file.seek(0)
            with tempfile.TemporaryFile() as plain:
                cut = _spool(_decompressed(path, file), plain, path)
                return _map(plain), cut
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def map_with_packets_expanded(path: Path, data: Buffer, end: int) -> Buffer:
    """Return a trace with its compressed packets decompressed. Raises InputError, DamagedError."""
    try:
        with tempfile.TemporaryFile() as plain:
            _spool(_expanded(path, data, end), plain, path)
            return _map(plain)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _map(file: BinaryIO) -> Buffer:
    file.flush()
    if not os.fstat(file.fileno()).st_size:
        return b""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _spool(pieces: Iterator[bytes], plain: BinaryIO, path: Path) -> str:
    """Write *pieces* to *plain*. Return what cut them short."""
    size = 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > MOST_BYTES:
                raise InputError(f"{path}: more than {MOST_BYTES >> 30} GiB when decompressed")
            plain.write(piece)
    except EOFError as error:
        return str(error)
    return ""


def _decompressed(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a gzip file. Raises EOFError where it ends too early."""
    stream = zlib.decompressobj(GZIP_WINDOW)
    done = 0
    while piece := file.read(PIECE):
        try:
            yield from _pieces(stream, piece)
        except zlib.error as error:
            raise InputError(f"{path}: gzip at about byte {done}: {error}") from error
        done += len(piece)
        if stream.eof:
            return
    raise EOFError(f"the gzip stream ends too early, at byte {done}")


def _pieces(stream: "zlib._Decompress", content: bytes) -> Iterator[bytes]:
    """Yield what *content* decompresses to, in pieces of bounded size."""
    while content and not stream.eof:
        yield stream.decompress(content, PIECE)
        content = stream.unconsumed_tail


def _expanded(path: Path, data: Buffer, end: int) -> Iterator[bytes]:
    for number, at, stop in fields(data, 0, end):
        if number != TRACE_PACKET or not stop:
            continue
        compressed = [
            data[first:last]
            for inner, first, last in fields(data, at, stop)
            if inner == Packet.COMPRESSED_PACKETS and last
        ]
        if not compressed:
            yield block(TRACE_PACKET, data[at:stop])
        for content in compressed:
            try:
                yield from _pieces(zlib.decompressobj(), content)
            except zlib.error as error:
                raise InputError(f"{path}: compressed packet at byte {at}: {error}") from error
