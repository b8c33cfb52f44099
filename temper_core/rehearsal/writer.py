"""Writes a recording. The file is valid after every look, and never exceeds its size limit."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temper_core.errors import InputError, MachineError
from temper_core.rehearsal.recording_format import LARGEST_BYTES, LONGEST_LINE_BYTES, Json

END_BYTES = 256
"""Reserved for the last line."""
PARTS = ("profiles", "plan")


class RecordingWriter:
    """A file that only its owner may read. It is packed if its name ends in ``.gz``.

    Raises InputError if the file already exists or cannot be made.
    """

    def __init__(self, path: Path, max_bytes: int, *, source: str) -> None:
        self.path = path
        self.looks = 0
        self.size = 0
        self._is_packed = path.suffix == ".gz"
        self._most = max_bytes - END_BYTES
        self._source = source
        self._text_bytes = 0
        self._head: Json = {}
        self._said: dict[str, Any] = {}
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except FileExistsError as error:
            raise InputError(f"{path}: is there already; remove it or name another file") from error
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error

    def add(self, document: Json) -> str:
        """Write the changed parts of *document* (``recording_document``).

        Returns an empty string, or the reason why it cannot be part of this recording. Raises
        InputError if one look exceeds the size limit, MachineError if the file cannot be written.
        """
        head = document["head"]
        if self._head and any(head[part] != self._head[part] for part in ("settings", "machine")):
            return "the settings or the machine have changed"
        lines = list(self._new_lines(document))
        if any(len(line) > LONGEST_LINE_BYTES for line in lines):
            return f"a line is longer than {LONGEST_LINE_BYTES} bytes"
        if not self._has_written(b"".join(lines)):
            if self.looks == 0:
                raise InputError(f"{self.path}: --max-bytes has no room for one look at this node")
            return "the file has its full size"
        self._head = head
        self._said = {part: document[part] for part in PARTS}
        self.looks += 1
        return ""

    def close(self, why: str) -> None:
        """Write the last line with *why*, the reason of the end. Raise as ``add`` does."""
        try:
            if self.looks:
                self._most += END_BYTES
                self._has_written(_line("end", {"looks": self.looks, "why": why[:100]}))
            else:
                self.path.unlink(missing_ok=True)
        finally:
            os.close(self._descriptor)

    def _new_lines(self, document: Json) -> Iterator[bytes]:
        if not self._head:
            yield _line("recording", {**document["head"], "source": self._source})
        for part in PARTS:
            if part not in self._said or self._said[part] != document[part]:
                yield _line(part, {part: document[part]})
        yield _line("look", {"look": document["look"]})

    def _has_written(self, text: bytes) -> bool:
        """Write *text* if it fits within the limit. Return whether it was written."""
        # Each look is a gzip member of its own, so that the file is valid and its size known.
        packed = gzip.compress(text, 6, mtime=0) if self._is_packed else text
        if self.size + len(packed) > self._most or self._text_bytes + len(text) > LARGEST_BYTES:
            return False
        try:
            written = 0
            while written < len(packed):
                written += os.write(self._descriptor, packed[written:])
        except OSError as error:
            os.ftruncate(self._descriptor, self.size)
            os.lseek(self._descriptor, self.size, os.SEEK_SET)
            raise MachineError(
                f"{self.path}: {error.strerror}; {self.looks} looks were kept"
            ) from error
        self.size += len(packed)
        self._text_bytes += len(text)
        return True


def _line(kind: str, values: Json) -> bytes:
    return json.dumps({"kind": kind, **values}, separators=(",", ":")).encode() + b"\n"
