"""Reads the lines of a recording's file: unpacked, numbered, and bounded in size."""

import io
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core.documents import parse_json
from temper_core.errors import DocumentError
from temper_core.given_files import UnpackedFile
from temper_core.rehearsal.recording_format import LARGEST_BYTES, LONGEST_LINE_BYTES

MAGIC = b"\x1f\x8b"
LONGEST_PROBLEM = 240


@frozen
class Line:
    """One line: its position (``FILE:NUMBER``), its kind, and its other keys."""

    source: str
    kind: str
    values: dict[str, Any]

    def misfit(self, *problems: str) -> DocumentError:
        """Return an error that names this line and the first of *problems*."""
        return misfit(self.source, *problems)


def misfit(source: str, *problems: str) -> DocumentError:
    """Return an error with the first of *problems*, printable, in one line of bounded length."""
    text = problems[0][: LONGEST_PROBLEM + 1]
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    if len(text) > LONGEST_PROBLEM:
        text = f"{text[:LONGEST_PROBLEM]}…"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return DocumentError(source, [text + more])


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of the file at *path*, packed or not.

    Raises DocumentError, naming file and line, if it is no regular file, is truncated inside a
    line, has a line that is no JSON object with a ``kind``, or is larger than ``LARGEST_BYTES``.
    """
    number, size = 1, 0
    with _opened(path) as file:
        while text := _next_line(file, f"{path}:{number}"):
            size += len(text)
            if size > LARGEST_BYTES:
                raise misfit(f"{path}:{number}", f"more than {LARGEST_BYTES} bytes of text")
            yield _parsed(text, f"{path}:{number}")
            number += 1


def _opened(path: Path) -> "io.BufferedIOBase":
    # Only a regular file is read: a pipe may block for ever, and a device may never end.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise misfit(str(path), error.strerror or str(error)) from error
    except ValueError as error:
        raise misfit(str(path), "is no name of a file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise misfit(str(path), "is not a regular file")
    file = open(descriptor, "rb")  # noqa: SIM115, PTH123 - the caller closes it; flags are the point
    try:
        is_packed = file.peek(len(MAGIC))[: len(MAGIC)] == MAGIC
    except OSError as error:
        file.close()
        raise misfit(str(path), error.strerror or str(error)) from error
    return _Unpacked(file) if is_packed else file


class _Unpacked(UnpackedFile):
    """A packed file that also closes the underlying file."""

    def __init__(self, file: io.BufferedReader) -> None:
        super().__init__(file)
        self._file = file

    def close(self) -> None:
        """Close both files."""
        super().close()
        self._file.close()


def _next_line(file: "io.BufferedIOBase", source: str) -> bytes:
    try:
        text = file.readline(LONGEST_LINE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = "is cut here" if isinstance(error, EOFError) else "cannot be unpacked from here on"
        raise misfit(source, why) from error
    if len(text) > LONGEST_LINE_BYTES:
        raise misfit(source, f"is longer than {LONGEST_LINE_BYTES} bytes")
    if text and not text.endswith(b"\n"):
        raise misfit(source, "is cut inside this line")
    return text


def _parsed(text: bytes, source: str) -> Line:
    try:
        document = parse_json(text.decode(), source=source)
    except UnicodeDecodeError as error:
        raise misfit(source, f"is not UTF-8 text (byte {error.start})") from error
    except DocumentError as error:
        raise misfit(source, *error.problems) from error
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise misfit(source, "is no object with a 'kind'")
    return Line(source, document.pop("kind"), document)
