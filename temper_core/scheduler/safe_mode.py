"""Who asks for safe mode, and why: several requesters, remembered apart, across restarts.

Entering never fails. A request holds from the moment ``add`` is called, in memory; then it is
written down, and where that is impossible (full disk, read-only root) ``defect`` says so and the
request still holds. Reading it back errs on the safe side: a file that makes no sense is a
request of its own.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs
import structlog
from attrs import frozen

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.listening.path_watch import PathWatch

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

SCHEMA_VERSION = 1
FILE_REQUESTER = "file"
UNREADABLE_REQUESTER = "unreadable-state"
LONGEST_NAME = 128
LONGEST_REASON = 500


@frozen
class Request:
    """One requester's wish: why, and since when (wall-clock seconds)."""

    reason: str
    since: float


@frozen
class _Document:
    requests: Mapping[str, Request]
    schema_version: int = SCHEMA_VERSION


class SafeModeRequests:
    """The requests for safe mode on this node; every method may be called from any thread.

    *file* is the host's own switch: while it exists, the requester ``file`` asks, and only
    removing it ends that. *state* is where the others are kept. *changed* is called, on the
    thread that made the change, whenever a requester came or went.
    """

    def __init__(
        self,
        file: Path,
        state: Path,
        *,
        changed: Callable[[], None] = lambda: None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._watch = PathWatch(file)
        self._state = state
        self._changed = changed
        self._wall = wall
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # apart, so that a hung disk holds up no decision
        self._is_kept = True
        self.defect = ""
        self._requests = self._remembered()
        self._file_request: Request | None = None
        self._published: Mapping[str, Request] = MappingProxyType({})
        self._publish()
        self.poll_file()

    def add(self, requester: str, reason: str) -> None:
        """Ask for safe mode in *requester*'s name; a second time only replaces the reason."""
        name = _name(requester)
        with self._lock:
            known = self._requests.get(name)
            since = known.since if known else self._wall()
            self._requests[name] = Request(reason.strip()[:LONGEST_REASON], since)
            self._publish()
        self._changed()
        self._persist()
        log.warning("safe_mode_requested", requester=name, reason=reason)

    def withdraw(self, requester: str) -> bool:
        """Take back *requester*'s wish; return whether it had one that could be taken back.

        The requester ``file`` is taken back by removing the file.
        """
        name = _name(requester)
        with self._lock:
            if name not in self._requests:
                return False
            del self._requests[name]
            self._publish()
        self._changed()
        self._persist()
        log.info("safe_mode_request_withdrawn", requester=name)
        return True

    def keep_on_disk(self, *, is_kept: bool) -> None:
        """Write requests down, as usual; or hold them in memory alone, and remove what there is.

        The latter is for an agent whose host was restored: it must not leave anything again.
        """
        with self._lock:
            has_changed, self._is_kept = self._is_kept is not is_kept, is_kept
        if has_changed:
            self._persist()

    def active(self) -> Mapping[str, Request]:
        """Return every request that stands; never waits for a disk or another thread."""
        return self._published

    @property
    def is_file_heard(self) -> bool:
        """Whether the descriptor tells of every change of the host's file."""
        return self._watch.is_heard

    def fileno(self) -> int:
        """Return the descriptor that is readable when the host's file may have come or gone."""
        return self._watch.fileno()

    def poll_file(self) -> bool:
        """Look whether the host's file is there; return whether that changed anything."""
        self._watch.arm()
        found = self._look()
        if found == self._file_request:
            return False
        with self._lock:
            self._file_request = found
            self._publish()
        self._changed()
        log.warning("safe_mode_file_changed", file=str(self._file), is_present=found is not None)
        return True

    def _look(self) -> Request | None:
        try:
            since = self._file.lstat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            told = f"{self._file} cannot be looked at: {error.strerror}"
            return Request(told, self._file_request.since if self._file_request else self._wall())
        return Request(self._written_reason() or f"{self._file} is there", since)

    def _written_reason(self) -> str:
        """Return what the file says, on one line; a pipe in its place must not block."""
        with suppress(OSError):
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                text = os.read(descriptor, LONGEST_REASON).decode(errors="replace")
            finally:
                os.close(descriptor)
            return "; ".join(line.strip() for line in text.splitlines() if line.strip())
        return ""

    def _publish(self) -> None:
        standing = dict(self._requests)
        if self._file_request is not None:
            standing[FILE_REQUESTER] = self._file_request
        self._published = MappingProxyType(standing)

    def _remembered(self) -> dict[str, Request]:
        try:
            text = self._state.read_text(encoding="utf-8")
            table = documents.parse_json(text, source=str(self._state))
            read = documents.fit(table, _Document, source=str(self._state))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, UnicodeDecodeError, DocumentError) as error:
            log.error("safe_mode_state_unreadable", state=str(self._state), problem=str(error))  # noqa: TRY400 - the cause is the message
            told = f"{self._state} cannot be read, so somebody may have asked: {error}"
            return {UNREADABLE_REQUESTER: Request(told[:LONGEST_REASON], self._wall())}
        return dict(read.requests)

    def _persist(self) -> None:
        """Replace the state as a whole, readable by its owner only; without requests remove it."""
        with self._writing:
            with self._lock:
                requests = {name: attrs.asdict(one) for name, one in self._requests.items()}
            try:
                if requests and self._is_kept:
                    _replace(self._state, {"schema_version": SCHEMA_VERSION, "requests": requests})
                else:
                    self._state.unlink(missing_ok=True)
            except OSError as error:
                self.defect = f"{self._state} cannot be written: {error.strerror}"
                log.warning("safe_mode_state_not_written", problem=self.defect)
            else:
                self.defect = ""


def _name(requester: str) -> str:
    return requester.strip()[:LONGEST_NAME] or "unnamed"


def _replace(path: Path, table: Mapping[str, Any]) -> None:
    """Write *table* beside *path* and rename it over, so that a crash leaves old or new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    try:
        descriptor = os.open(
            beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
