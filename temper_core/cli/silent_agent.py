"""The host's safe-mode file, written while an agent that was asked is silent."""

import threading
from types import TracebackType
from typing import Self

from temper_core.errors import MachineError
from temper_core.safe_mode.host_file import SafeModeFile

SILENT_S = 3.0
"""An agent answers within a turn of its server, in milliseconds."""


class FileIfSilent:
    """Adds a request to *file* if the block that it surrounds lasts longer than ``SILENT_S``.

    An agent that has no descriptors or threads left answers nothing, and may still read the file.
    Without a thread for the wait, the file is written at once.
    """

    def __init__(self, file: SafeModeFile, requester: str, reason: str) -> None:
        self.is_written, self.problem = False, ""
        self._file, self._requester, self._reason = file, requester, reason
        self._timer = threading.Timer(SILENT_S, self.write)
        self._timer.daemon = True

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
        if self._timer.ident is not None:
            self._timer.join()

    def write(self) -> None:
        """Add the request now. ``problem`` is why that failed."""
        try:
            self._file.add(self._requester, self._reason)
        except MachineError as error:
            self.problem = str(error)
        else:
            self.is_written = True
