"""Files as answers: whole, in part (RFC 9110, 14), or without a body if the client has them."""

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from io import FileIO
from pathlib import Path

from attrs import frozen

from temper_core.errors import InputError

PIECE_BYTES = 64 * 1024
SENT_WHOLE_BYTES = 256 * 1024
"""A part of at most this size is read at once. A larger one is sent as a stream."""
OK, PARTIAL, NOT_MODIFIED, UNSATISFIABLE = 200, 206, 304, 416
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENAMETOOLONG)
"""Opening a socket fails with ENXIO."""
_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*")


class NoFile(InputError):  # noqa: N818 - reads as the fact it reports
    """No regular file has that name."""


@frozen
class FilePart:
    """The status, headers and bytes to send of a file. ``length`` is the size of ``pieces``."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""
    pieces: Iterator[bytes] | None = None
    length: int | None = None


@frozen
class _Span:
    first: int
    length: int


def part_of_file(path: Path, method: str, headers: Mapping[str, str]) -> FilePart:
    """Return the part to send of the file at *path*. Raise NoFile, or OSError if unreadable.

    *headers* are those of the request, by name in lower case.
    """
    file = _opened(path)
    try:
        part = _part(file, method, headers)
    except BaseException:
        file.close()
        raise
    if part.pieces is None:
        file.close()
    return part


class FilePieces:
    """A part of an open file, piece by piece. Closes the file at its end."""

    def __init__(self, file: FileIO, length: int) -> None:
        self._file = file
        self._left = length

    def __iter__(self) -> "FilePieces":
        """Return this object."""
        return self

    def __next__(self) -> bytes:
        """Return the next piece. Raise OSError if the file was truncated."""
        if self._left <= 0:
            self.close()
            raise StopIteration
        piece = self._file.read(min(PIECE_BYTES, self._left))
        if not piece:
            raise OSError("the file has become shorter")
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _opened(path: Path) -> FileIO:
    try:
        # Without O_NONBLOCK, opening a FIFO blocks until it has a writer.
        file = FileIO(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except ValueError as error:  # a NUL in its name
        raise NoFile("there is no such file") from error
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        raise NoFile("there is no such file") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NoFile("there is no such file")
    return file


def _part(file: FileIO, method: str, headers: Mapping[str, str]) -> FilePart:
    status = os.fstat(file.fileno())
    tag = f'"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"'
    validators = {
        "etag": tag,
        "last-modified": formatdate(int(status.st_mtime), usegmt=True),
        "accept-ranges": "bytes",
    }
    if _has_it(tag, int(status.st_mtime), headers):
        return FilePart(NOT_MODIFIED, validators)
    header = headers.get("range", "") if method == "GET" else ""
    is_asked = header and _is_same(tag, int(status.st_mtime), headers.get("if-range", ""))
    written = _range_in(header) if is_asked else None
    if written is None:
        return _read(file, OK, validators, _Span(0, status.st_size))
    span = _span(written, status.st_size)
    if span is None:
        return FilePart(UNSATISFIABLE, {**validators, "content-range": f"bytes */{status.st_size}"})
    validators["content-range"] = (
        f"bytes {span.first}-{span.first + span.length - 1}/{status.st_size}"
    )
    return _read(file, PARTIAL, validators, span)


def _read(file: FileIO, status: int, headers: Mapping[str, str], span: _Span) -> FilePart:
    file.seek(span.first)
    pieces = FilePieces(file, span.length)
    if span.length > SENT_WHOLE_BYTES:
        return FilePart(status, headers, pieces=pieces, length=span.length)
    return FilePart(status, headers, b"".join(pieces))


def _has_it(tag: str, modified: int, headers: Mapping[str, str]) -> bool:
    """Whether the client has this version of the file (RFC 9110, 13.1.2 and 13.1.3)."""
    if (listed := headers.get("if-none-match")) is not None:
        tags = [listed_tag.strip().removeprefix("W/") for listed_tag in listed.split(",")]
        return tag in tags or listed.strip() == "*"
    since = _date(headers.get("if-modified-since", ""))
    return since is not None and modified <= since


def _is_same(tag: str, modified: int, condition: str) -> bool:
    """Whether ``If-Range`` allows a range (RFC 9110, 13.1.5). An empty one does."""
    return not condition or condition.strip() == tag or _date(condition) == modified


def _date(text: str) -> float | None:
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        moment: datetime = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _range_in(asked: str) -> "re.Match[str] | None":
    """Parse a range of bytes. A malformed one and several ranges are ignored and return None."""
    written = _RANGE.fullmatch(asked)
    if written is None or not (written[1] or written[2]):
        return None
    is_backwards = written[1] and written[2] and int(written[2]) < int(written[1])
    return None if is_backwards else written


def _span(written: "re.Match[str]", size: int) -> _Span | None:
    """Return the range within a file of *size* bytes, or None if it is empty."""
    if not written[1]:
        length = min(int(written[2]), size)
        return _Span(size - length, length) if length else None
    first = int(written[1])
    last = min(int(written[2]), size - 1) if written[2] else size - 1
    return _Span(first, last - first + 1) if first < size else None
