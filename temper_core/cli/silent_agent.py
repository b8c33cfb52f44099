"""The host's safe-mode file, written while an agent that was asked is silent."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from temper_core.cli.host_file_process import SilentFileError
from temper_core.errors import MachineError

SILENT_S = 3.0
"""An agent answers within milliseconds, where its disk hangs after ``patient_writer.WAIT_S``."""


class FileIfSilent:
    """Adds a request to the host's file if the block that it surrounds lasts over ``SILENT_S``.

    An agent that has no descriptors or threads left answers nothing, and may still read the file.
    Without a thread for the wait, the file is written at once. *add* writes it, and returns a note.
    ``problem`` is why that failed.
    """

    def __init__(self, add: Callable[[], str]) -> None:
        self.note = ""
        self.problem: MachineError | None = None
        self._add, self._writing, self._is_done = add, threading.Lock(), False
        self._timer = threading.Timer(SILENT_S, self.write)
        self._timer.daemon = True

    @property
    def is_written(self) -> bool:
        """Whether the file has the request."""
        return self._is_done and self.problem is None

    @property
    def is_silent(self) -> bool:
        """Whether the file's disk does not answer."""
        return isinstance(self.problem, SilentFileError)

    def __enter__(self) -> Self:
        try:
            self._timer.start()
        except RuntimeError:  # the user or the cgroup has no thread left
            self.write()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        # Ctrl-C waits for nothing.
        if self._timer.ident is not None and kind is not KeyboardInterrupt:
            self._timer.join()

    def write(self) -> None:
        """Add the request now, or wait until the timer's thread has done so."""
        with self._writing:
            if self._is_done:
                return
            try:
                self.note = self._add()
            except MachineError as error:
                self.problem = error
            self._is_done = True
