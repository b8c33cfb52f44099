"""Files as answers: whole, in part (RFC 9110, 14), or not at all where the client has them."""

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
"""What is at most so large is read at once. The rest takes one of the streams."""
OK, PARTIAL, NOT_MODIFIED, UNSATISFIABLE = 200, 206, 304, 416
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENAMETOOLONG)
"""ENXIO is what opening a socket gives."""
_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*")


class NoFile(InputError):  # noqa: N818 - reads as the fact it reports
    """There is no regular file of that name."""


@frozen
class FilePart:
    """What is sent of a file. ``length`` is that of ``pieces``."""

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
    """Return what is sent of the file at *path*. Raise NoFile, or OSError where it is unreadable.

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
        """Return itself."""
        return self

    def __next__(self) -> bytes:
        """Return the next piece. Raise OSError where the file has become shorter."""
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
        # Without O_NONBLOCK a FIFO would wait for its writer.
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
    found = os.fstat(file.fileno())
    tag = f'"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"'
    told = {
        "etag": tag,
        "last-modified": formatdate(int(found.st_mtime), usegmt=True),
        "accept-ranges": "bytes",
    }
    if _has_it(tag, int(found.st_mtime), headers):
        return FilePart(NOT_MODIFIED, told)
    asked = headers.get("range", "") if method == "GET" else ""
    is_asked = asked and _is_same(tag, int(found.st_mtime), headers.get("if-range", ""))
    written = _range_in(asked) if is_asked else None
    if written is None:
        return _read(file, OK, told, _Span(0, found.st_size))
    span = _span(written, found.st_size)
    if span is None:
        return FilePart(UNSATISFIABLE, {**told, "content-range": f"bytes */{found.st_size}"})
    told["content-range"] = f"bytes {span.first}-{span.first + span.length - 1}/{found.st_size}"
    return _read(file, PARTIAL, told, span)


def _read(file: FileIO, status: int, headers: Mapping[str, str], span: _Span) -> FilePart:
    file.seek(span.first)
    pieces = FilePieces(file, span.length)
    if span.length > SENT_WHOLE_BYTES:
        return FilePart(status, headers, pieces=pieces, length=span.length)
    return FilePart(status, headers, b"".join(pieces))


def _has_it(tag: str, modified: int, headers: Mapping[str, str]) -> bool:
    """Whether the client has this very file already (RFC 9110, 13.1.2 and 13.1.3)."""
    if (listed := headers.get("if-none-match")) is not None:
        tags = [each.strip().removeprefix("W/") for each in listed.split(",")]
        return tag in tags or listed.strip() == "*"
    since = _date(headers.get("if-modified-since", ""))
    return since is not None and modified <= since


def _is_same(tag: str, modified: int, condition: str) -> bool:
    """Whether ``If-Range`` lets a range be sent (RFC 9110, 13.1.5). It does where it is empty."""
    return not condition or condition.strip() == tag or _date(condition) == modified


def _date(text: str) -> float | None:
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        told: datetime = parsedate_to_datetime(text)
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
    return None


def _range_in(asked: str) -> "re.Match[str] | None":
    """Read a range of bytes; None for what is none, and for several, which need not be sent."""
    written = _RANGE.fullmatch(asked)
    if written is None or not (written[1] or written[2]):
        return None
    is_backwards = written[1] and written[2] and int(written[2]) < int(written[1])
    return None if is_backwards else written


def _span(written: "re.Match[str]", size: int) -> _Span | None:
    """Return the range of a file of *size*; None where there is nothing of it."""
    if not written[1]:
        length = min(int(written[2]), size)
        return _Span(size - length, length) if length else None
    first = int(written[1])
    last = min(int(written[2]), size - 1) if written[2] else size - 1
    return _Span(first, last - first + 1) if first < size else None
