"""Files that a user names: opened without waiting for ever, and unpacked within a bound.

Whoever made such a file is another person, and chooses its kind and its contents.
"""

import gzip
import io
import os
import select
import stat
import sys
from pathlib import Path

from temper_core.errors import InputError

ROOM_BYTES = 1024 * 1024
PIECE_BYTES = 64 * 1024
MOST_PACKED_OF_UNPACKED = 2
"""Gzip lengthens what it cannot pack by less than a thousandth (RFC 1951, 3.2.4)."""
MS = 1000


def open_file(path: Path, *, pipe_wait_s: float | None = None) -> io.BufferedReader:
    """Open the regular file at *path*. Raise InputError for another kind of file.

    A pipe is opened if something arrives within *pipe_wait_s*, which is None for no pipes.
    """
    # Without O_NONBLOCK, opening a pipe blocks until it has a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        file = open(os.open(path, flags), "rb")  # noqa: SIM115, PTH123 - the caller closes it
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path}: is no name of a file") from error
    problem = _problem(file, pipe_wait_s)
    if problem:
        file.close()
        raise InputError(f"{path}: {problem}")
    return file


def _problem(file: io.BufferedReader, pipe_wait_s: float | None) -> str:
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode):
        return ""
    if not stat.S_ISFIFO(mode) or pipe_wait_s is None:
        return "is not a regular file"
    poll = select.poll()
    poll.register(file.fileno(), select.POLLIN)
    if not poll.poll(pipe_wait_s * MS):
        return f"is a pipe into which nothing was written within {pipe_wait_s:g} s"
    os.set_blocking(file.fileno(), True)
    return ""


class _PackedBytes(io.RawIOBase):
    """The packed bytes of *file*, as far as they are not far more than the ``unpacked`` ones."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self.unpacked = 0
        self._file = file
        self._packed = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next *size* bytes. Raise BadGzipFile for too many."""
        content = self._file.read(size)
        self._packed += len(content)
        if self._packed > MOST_PACKED_OF_UNPACKED * self.unpacked + ROOM_BYTES:
            raise gzip.BadGzipFile("is far larger than its contents, which no packed file is")
        return content


class UnpackedFile(gzip.GzipFile):
    """The contents of a file of gzip, read forward by ``read`` and ``readline``.

    Raises BadGzipFile, which is an OSError, for a file that is far larger than its contents. A file
    of millions of empty members would take minutes to read. The caller closes *file*.
    """

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._bytes = _PackedBytes(file)
        super().__init__(mode="rb", fileobj=self._bytes)

    def read(self, size: int | None = -1) -> bytes:
        """Return the next *size* bytes, fewer at the end."""
        left, pieces = sys.maxsize if size is None or size < 0 else size, []
        while piece := super().read(min(left, PIECE_BYTES)):
            self._bytes.unpacked += len(piece)
            left -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line, at most *size* bytes of it."""
        line = super().readline(size)
        self._bytes.unpacked += len(line)
        return line
