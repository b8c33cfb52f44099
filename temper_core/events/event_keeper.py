"""Keeps the events of a log in its file: reads them at the start, writes them in a thread."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from temper_core.events.document import event_line
from temper_core.events.event_file import FILE_NAME, EventFile, HeldError, Remembered
from temper_core.events.event_log import EventLog
from temper_core.events.kinds import EVENTS_DAMAGED
from temper_core.events.lanes import NEWEST_KEPT
from temper_core.records.events import Event

BATCH_S = 0.5
"""The time in which events are gathered before they are written together."""
RETRY_S = 60.0
"""The period of retrying a failed write without a new event."""
CLOSE_S = 5.0
"""The longest wait for a hanging disk when the agent ends."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def events_path(state: Path) -> Path | None:
    """Return the path of the events beside the file *state*, None if that names no file."""
    return state.with_name(FILE_NAME) if state.name else None


class EventKeeper:
    """Writes new events to the file. After a failure they stay in memory, and ``defect`` has it.

    Without a *path* no event is kept over a restart. The agent's loop never waits for the disk.
    """

    def __init__(self, events: EventLog, path: Path | None = None) -> None:
        self._events = events
        self._file = EventFile(path) if path is not None else None
        self._writing = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._may_keep: Callable[[], bool] = lambda: True
        self._is_kept = True
        self._is_whole = True
        self._written = 0
        self.defect = ""

    @property
    def path(self) -> Path | None:
        """The file, None without one."""
        return self._file.path if self._file is not None else None

    def hold(self) -> None:
        """Lock the file for this agent, until ``close``. Raises HeldError if another one has it.

        If the file cannot be opened, the agent runs without the lock, and ``defect`` says why.
        """
        if self._file is None:
            return
        try:
            self._file.hold()
        except HeldError:
            raise
        except OSError as error:
            self._note(error)

    def open(self) -> None:
        """Load the events of an earlier run, and begin to write."""
        if self._file is None:
            return
        try:
            stored = self._file.read()
        except OSError as error:
            self._note(error)
            stored, self._is_whole = Remembered(), False
        self._events.remember(stored.events)
        self._written = self._events.last
        if stored.damaged:
            self._is_whole = False
            reason = f"{stored.damaged} lines could not be read"
            self._events.record(EVENTS_DAMAGED.name, str(self._file.path), reason)
        self._thread.start()

    def begin(self, may_keep: Callable[[], bool]) -> None:
        """Write only while *may_keep* returns true."""
        self._may_keep = may_keep

    def look(self) -> None:
        """Write events if that is allowed now. Else remove the file, and keep them in memory."""
        with self._writing:
            is_kept = self._may_keep()
            if self._file is None or self._is_kept is is_kept:
                return
            self._is_kept, self._is_whole = is_kept, False
            if is_kept:
                self._write()
                return
            try:
                self._file.remove()
            except OSError as error:
                self._note(error)

    def close(self) -> None:
        """Write the remaining events, and close the file."""
        if self._file is None:
            return
        if self._thread.is_alive():
            self._ending.set()
            self._events.close()
            self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            self._file.close()

    def _run(self) -> None:
        number = self._written
        while not self._ending.is_set():
            self._events.wait(number, RETRY_S if self.defect else None)
            self._ending.wait(BATCH_S)
            number = self._events.last
            with self._writing:
                self._write()
        with self._writing:
            self._write()  # what came during the last write

    def _write(self) -> None:
        """Write the unwritten events. The caller holds the lock."""
        events: Sequence[Event] = self._events.after(self._written)
        if self._file is None or not self._is_kept or not (events or not self._is_whole):
            return
        try:
            if not self._is_whole or not self._file.append(map(event_line, events)):
                events = self._newest(self._file.largest_bytes * 3 // 4)
                self._file.replace(map(event_line, events))
        except OSError as error:
            self._is_whole = False
            self._note(error)
        else:
            self._is_whole, self.defect = True, ""
            self._written = events[-1].number if events else self._written

    def _newest(self, room: int) -> Sequence[Event]:
        """Return the newest events of each lane that fit into *room* bytes."""
        most = NEWEST_KEPT
        while True:
            events = self._events.newest(most)
            if most == 1 or sum(len(event_line(event)) for event in events) <= room:
                return events
            most //= 2

    def _note(self, error: OSError) -> None:
        path = self._file.path if self._file is not None else ""
        defect = f"events are not kept over a restart: {path}: {error.strerror or error}"
        if defect != self.defect:
            log.warning("events_not_written", problem=defect)
        self.defect = defect
