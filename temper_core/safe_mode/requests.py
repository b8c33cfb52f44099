"""Requests for safe mode, kept by requester and across restarts.

Entering never fails. A request holds in memory from the call of ``add``. Then it is written to
disk, on a thread of its own. If that fails (full disk, read-only root) or the disk hangs,
``defect`` has the reason and the request still holds. A failed write is made again later. Reading
errs on the safe side: a malformed file counts as a request.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import structlog

from temper_core.file_watch.path_watch import PathWatch
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.model import (
    FILE_REQUESTER,
    LONGEST_REASON,
    LONGEST_REQUESTER,
    UNREADABLE_REQUESTER,
    Request,
)
from temper_core.safe_mode.patient_writer import WAIT_S, PatientWriter
from temper_core.safe_mode.state_file import StateFile

AGAIN_S = 10.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


IN_MEMORY = "requests are in memory only until the restoration of the host is released"


class SafeModeRequests:
    """The requests for safe mode on this node. Any thread may call every method.

    *file* is the host's switch: while it exists, the requester ``file`` has a request, which only
    its removal ends. *state* is the file of the other requests. *changed* is called, on the
    thread that made the change, whenever a request was added or withdrawn. *kept* is called on the
    thread that writes whenever ``is_kept`` has changed.
    """

    def __init__(
        self,
        file: Path,
        state: Path,
        *,
        changed: Callable[[], None] = lambda: None,
        kept: Callable[[], None] = lambda: None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._file = SafeModeFile(file)
        self._watch = PathWatch(file)
        self._state = StateFile(state)
        self._changed = changed
        self._kept = kept
        self._wall = wall
        self._lock = threading.Lock()
        self._writer = PatientWriter()
        self._is_kept = self._was_kept = True
        self._defect = ""
        self._again_at = 0.0
        self._requests: dict[str, Request] = {}
        self._requests = self._remembered()
        self._file_request: Request | None = None
        self._published: Mapping[str, Request] = MappingProxyType({})
        self._publish()
        self.poll_file()

    def read_again(self) -> None:
        """Take the requests from the disk once more, before the first call of ``add``.

        An agent before this one may have written them after this object was made.
        """
        with self._lock:
            self._requests = self._remembered()
            self._publish()

    def add(self, requester: str, reason: str) -> None:
        """Request safe mode in *requester*'s name. A second call only replaces the reason."""
        self._add(_name(requester), reason)

    def add_in_memory(self, requester: str, reason: str) -> None:
        """Do as ``add``, and as ``keep_on_disk`` for memory only. The request holds at once."""
        self._add(_name(requester), reason, is_in_memory=True)
        self._changed()  # ``is_off_disk``

    def _add(self, name: str, reason: str, *, is_in_memory: bool = False) -> None:
        with self._lock:
            previous = self._requests.get(name)
            since = previous.since if previous else self._wall()
            self._requests[name] = Request(reason.strip()[:LONGEST_REASON], since)
            self._is_kept = self._is_kept and not is_in_memory
            self._publish()
        self._changed()
        self._persist()
        log.warning("safe_mode_requested", requester=name, reason=reason)

    def withdraw(self, requester: str) -> bool:
        """Withdraw *requester*'s request. Return whether there was one to withdraw.

        Only the removal of the file ends the request of ``file``.
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
        """Keep requests on disk, or in memory only and remove the file.

        Memory only is for an agent whose host was restored: it must not leave files again.
        """
        with self._lock:
            has_changed, self._is_kept = self._is_kept is not is_kept, is_kept
        if has_changed:
            self._persist()

    @property
    def is_kept(self) -> bool:
        """Whether requests may be written to disk."""
        return self._is_kept

    @property
    def is_off_disk(self) -> bool:
        """Whether requests are in memory only, and the disk has taken the removal of the file."""
        return not self._was_kept and not self._writer.is_busy

    @property
    def defect(self) -> str:
        """Why the requests are not on disk. Empty if they are."""
        if self._writer.is_late:
            return (
                f"{self._state.path} is not written: the disk has not answered for {WAIT_S:.0f} s"
            )
        return self._defect

    def active(self) -> Mapping[str, Request]:
        """Return every active request. Never waits for a disk or another thread."""
        return self._published

    @property
    def unkept(self) -> str:
        """Why an agent that starts now would not know of a request. Empty if it would of all.

        On a full disk the empty file that is left requests safe mode, too.
        """
        if not self.defect or self._writer.is_late:  # a read might hang, too
            return self.defect or (IN_MEMORY if self._requests and not self._is_kept else "")
        kept = self._state.read(self._wall).keys()
        return "" if UNREADABLE_REQUESTER in kept or self._requests.keys() <= kept else self.defect

    @property
    def is_file_heard(self) -> bool:
        """Whether the descriptor reports every change of the host's file."""
        return self._watch.is_heard

    def fileno(self) -> int:
        """Return the descriptor that is readable after a change of the host's file."""
        return self._watch.fileno()

    def poll_file(self) -> bool:
        """Check the host's file. Return whether its request changed.

        Requests that could not be written are written again, every ``AGAIN_S`` at most.
        """
        has_changed = self._poll_file()
        self._write_again()
        return has_changed

    def _poll_file(self) -> bool:
        self._watch.arm()
        request = self._look()
        if request == self._file_request:
            return False
        with self._lock:
            self._file_request = request
            self._publish()
        self._changed()
        log.warning(
            "safe_mode_file_changed", file=str(self._file.path), is_present=request is not None
        )
        return True

    def _look(self) -> Request | None:
        previous = self._file_request
        return self._file.request(lambda: previous.since if previous else self._wall())

    def _publish(self) -> None:
        requests = dict(self._requests)
        if self._file_request is not None:
            requests[FILE_REQUESTER] = self._file_request
        self._published = MappingProxyType(requests)

    def _remembered(self) -> dict[str, Request]:
        requests = self._state.read(self._wall)
        unreadable = requests.get(UNREADABLE_REQUESTER)
        if unreadable and UNREADABLE_REQUESTER not in self._requests:
            log.error("safe_mode_state_unreadable", problem=unreadable.reason)
        return requests

    def _write_again(self) -> None:
        if self.defect and time.monotonic() >= self._again_at and not self._writer.is_busy:
            self._again_at = time.monotonic() + AGAIN_S
            with suppress(RuntimeError):  # no thread can be started
                self._writer.begin(self._write)

    def _persist(self) -> None:
        if not self._writer.write(self._write):
            log.warning("safe_mode_state_not_written", problem=self.defect)

    def _write(self) -> None:
        """Write the newest requests. Only the writer may call this, and wait for a disk."""
        with self._lock:
            is_kept = self._is_kept
            requests = dict(self._requests) if is_kept else {}
        if is_kept is not self._was_kept:
            self._kept()
            self._was_kept = is_kept
        try:
            self._state.write(requests)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or "out of memory"
            defect = f"{self._state.path} cannot be written: {why}"
            if defect != self._defect:
                log.warning("safe_mode_state_not_written", problem=defect)
            self._defect = defect
        else:
            self._defect = ""


def _name(requester: str) -> str:
    return requester.strip()[:LONGEST_REQUESTER] or "unnamed"
