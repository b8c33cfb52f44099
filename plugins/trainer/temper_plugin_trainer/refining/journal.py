"""The journal of a climb: every answer, in order, so that an interrupted climb is continued.

It is a file of JSON lines. The first one has what the climb was asked to do. Each line is written
by one write and brought to the disk, so only the last can be cut short, and a cut line is dropped.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from temper_core import InputError, parse_json
from temper_core.console import printable

LARGEST_BYTES = 64 << 20
JsonLine = Mapping[str, Any]


@define
class Journal:
    """The lines at *path*. Those that were there are taken first, then new ones are added."""

    path: Path
    _descriptor: int = field(init=False)
    _left: list[JsonLine] = field(factory=list, init=False)
    is_resumed: bool = field(default=False, init=False)

    def open(self, header: JsonLine) -> None:
        """Open the file, or make it with *header*.

        Raises InputError if another process has it open, or if it is of another climb.
        """
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{self.path}: another temper train run writes it") from error
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from error
        lines = self._read()
        if not lines:
            self._write(header)
            return
        self._require_same(lines[0], header)
        self._left, self.is_resumed = lines[1:], True

    def close(self) -> None:
        """Close the file, which gives up its lock."""
        os.close(self._descriptor)

    def taken(self) -> JsonLine | None:
        """Return the next recorded line, None if all have been taken."""
        return self._left.pop(0) if self._left else None

    @property
    def left(self) -> int:
        """How many recorded lines have not been taken."""
        return len(self._left)

    def add(self, line: JsonLine) -> None:
        """Write a line, and wait until it is on the disk."""
        self._write(line)

    def _read(self) -> list[JsonLine]:
        """Return the whole lines, and cut a last one that is not whole off the file."""
        size = os.fstat(self._descriptor).st_size
        if size > LARGEST_BYTES:
            raise InputError(f"{self.path}: more than {LARGEST_BYTES >> 20} MiB")
        content = os.pread(self._descriptor, size, 0)
        whole = content[: content.rfind(b"\n") + 1]
        os.ftruncate(self._descriptor, len(whole))
        os.lseek(self._descriptor, 0, os.SEEK_END)
        texts = whole.decode(errors="replace").splitlines()
        return [self._parsed(number, text) for number, text in enumerate(texts, 1)]

    def _parsed(self, number: int, text: str) -> JsonLine:
        row = parse_json(text, source=f"{self.path}: line {number}")
        if not isinstance(row, dict):
            raise InputError(f"{self.path}: line {number}: must be a JSON object")
        return row

    def _require_same(self, found: JsonLine, header: JsonLine) -> None:
        for key in dict.fromkeys((*header, *found)):
            if found.get(key) != header.get(key):
                raise InputError(
                    f"{self.path}: is of a run with another {printable(key)}; continue it with "
                    "the same options, or name another --artifacts"
                )

    def _write(self, line: JsonLine) -> None:
        content = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            if os.write(self._descriptor, content) != len(content):
                raise InputError(f"{self.path}: the disk is full")
            os.fsync(self._descriptor)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from error
