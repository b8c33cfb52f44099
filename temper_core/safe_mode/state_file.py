"""The file in which an agent keeps requests for safe mode across restarts.

Reading errs on the safe side: an unreadable or malformed file counts as a request. Writing
replaces the file as a whole, so that a crash leaves the old one or the new one.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import attrs
from attrs import field, frozen
from attrs.validators import in_

from temper_core import documents
from temper_core.directory_tree import make_directories, sync_directory
from temper_core.errors import DocumentError
from temper_core.safe_mode.model import LONGEST_REASON, UNREADABLE_REQUESTER, Request

SCHEMA_VERSION = 1
LARGEST_FILE_BYTES = 4 * 1024 * 1024
"""Bytes. A request takes at most 3 KiB."""


@frozen
class _Document:
    requests: Mapping[str, Request]
    schema_version: int = field(default=SCHEMA_VERSION, validator=in_([SCHEMA_VERSION]))


@frozen
class StateFile:
    """The requests at *path*, readable by their owner only. Without requests there is no file."""

    path: Path

    def read(self, clock: Callable[[], float] = time.time) -> dict[str, Request]:
        """Return the requests by requester. An unreadable file counts as one, made now.

        So does a file of another kind, of another ``schema_version``, or beyond its bound.
        """
        try:
            text = documents.read_text(self.path, largest_bytes=LARGEST_FILE_BYTES)
            table = documents.parse_json(text, source=str(self.path))
            return dict(documents.fit(table, _Document, source=str(self.path)).requests)
        except DocumentError as error:
            if not self._is_there():
                return {}
            reason = f"{self.path} cannot be read, so it may hold a request: {error}"
            return {UNREADABLE_REQUESTER: Request(_one_line(reason), clock())}

    def write(self, requests: Mapping[str, Request]) -> None:
        """Replace the file by *requests*, or remove it if there are none. Raises OSError.

        If they cannot be written, an old file stays. Without one an empty file is left, which
        takes no block of a full disk and counts as a request when it is read.
        """
        if requests:
            entries = {name: attrs.asdict(request) for name, request in requests.items()}
            self._replace(
                json.dumps({"schema_version": SCHEMA_VERSION, "requests": entries}, indent=2)
            )
        else:
            self.path.unlink(missing_ok=True)
        # An operator's request is answered once it outlives a crash of the machine.
        sync_directory(self.path.parent)

    def _is_there(self) -> bool:
        """Whether anything has the file's name, a broken link included."""
        try:
            self.path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def _replace(self, text: str) -> None:
        make_directories(self.path.parent)
        beside = self.path.with_name(f"{self.path.name}.new")
        beside.unlink(missing_ok=True)  # opening a pipe of that name would block
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError:
            with suppress(OSError):
                beside.unlink()
            with suppress(OSError):
                os.close(os.open(self.path, flags, 0o600))
                sync_directory(self.path.parent)
            raise


def _one_line(text: str) -> str:
    """Return the beginning of *text* on one line, within the limit of a reason."""
    return "; ".join(text.splitlines())[:LONGEST_REASON]
