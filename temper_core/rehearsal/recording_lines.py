"""The lines of a recording as they stand in the file: unpacked, counted, and never too long."""

import gzip
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
from temper_core.rehearsal.recording_format import LARGEST_BYTES, LONGEST_LINE_BYTES

MAGIC = b"\x1f\x8b"
LONGEST_PROBLEM = 240


@frozen
class Line:
    """One line: where it stands (``FILE:NUMBER``), its kind, and what else it says."""

    source: str
    kind: str
    told: dict[str, Any]

    def misfit(self, *problems: str) -> DocumentError:
        """Return the error that names this line and the first of *problems*."""
        return misfit(self.source, *problems)


def misfit(source: str, *problems: str) -> DocumentError:
    """Return an error of one line, however many and long the problems and whatever is in them."""
    said = problems[0][: LONGEST_PROBLEM + 1]
    said = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in said)
    if len(said) > LONGEST_PROBLEM:
        said = f"{said[:LONGEST_PROBLEM]}…"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return DocumentError(source, [said + more])


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of the file at *path*, packed or not.

    Raises DocumentError, naming file and line, for what is no file, is cut inside a line, is no
    JSON object with a ``kind``, or is larger than a recording may be.
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
    # A pipe may never say anything, and a device may never end.
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
    is_packed = file.peek(len(MAGIC))[: len(MAGIC)] == MAGIC
    return _Unpacked(file) if is_packed else file


class _Unpacked(gzip.GzipFile):
    """A packed file that closes the file it reads."""

    def __init__(self, file: io.BufferedReader) -> None:
        super().__init__(fileobj=file)
        self._file = file

    def close(self) -> None:
        """Close both."""
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
        told = parse_json(text.decode(), source=source)
    except UnicodeDecodeError as error:
        raise misfit(source, f"is not UTF-8 text (byte {error.start})") from error
    except DocumentError as error:
        raise misfit(source, *error.problems) from error
    if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
        raise misfit(source, "is no object with a 'kind'")
    return Line(source, told.pop("kind"), told)
