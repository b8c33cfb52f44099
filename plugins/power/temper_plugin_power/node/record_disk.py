"""The state directory for a thread that stops waiting once a cap is not asked for any more."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from temper_core import DiskThread, MachineError, StateDirectory

Returned = TypeVar("Returned")


class NoLongerAskedError(MachineError):
    """The cap whose record was to be written is not asked for any more."""


class RecordDisk:
    """Implements ``StateDirectory``, and uses the disk of *state* on another thread.

    *is_given_up* is whether nobody wants the answer any more. ``look_again`` asks it again.
    *waiting* is a context around each wait.
    """

    def __init__(
        self,
        state: StateDirectory,
        is_given_up: Callable[[], bool],
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._state = state
        self._is_given_up = is_given_up
        self._waiting = waiting
        self._thread = DiskThread("the limits' record")
        self._changed = threading.Condition()

    @property
    def problem(self) -> str:
        """What says that the disk does not answer, empty while it does."""
        silence = self._thread.silence
        return "" if silence is None else str(silence)

    @property
    def path(self) -> Path:
        """The directory."""
        return self._state.path

    @property
    def limit_bytes(self) -> int:
        """The bound on all its files together."""
        return self._state.limit_bytes

    def used_bytes(self) -> int:
        """Return the size of all its files together."""
        return self._state.used_bytes()

    def write(self, name: str, content: bytes) -> Path:
        """Replace the file *name* as a whole.

        Raises NoLongerAskedError if it is given up. The file may be written later then, in its
        turn.
        """
        return self.wait_for(lambda: self._state.write(name, content))

    def wait_for(self, work: Callable[[], Returned]) -> Returned:
        """Return the result of *work*, which uses the disk. Raises its error, as ``write`` does."""
        answer: Future[Returned] = Future()
        answer.add_done_callback(lambda _: self.look_again())
        if not self._is_given_up():
            self._thread.begin(lambda: _answer(answer, work))
            with self._waiting(), self._changed:
                self._changed.wait_for(lambda: answer.done() or self._is_given_up())
        # Also of a disk that has answered at last: what follows would set the cap.
        if self._is_given_up():
            raise NoLongerAskedError("the cap is not asked for any more")
        return answer.result()

    def look_again(self) -> None:
        """Let the thread that waits see whether it is given up."""
        with self._changed:
            self._changed.notify_all()


def _answer(answer: "Future[Returned]", work: Callable[[], Returned]) -> None:
    try:
        answer.set_result(work())
    except Exception as error:  # noqa: BLE001 - the thread that waits raises it
        answer.set_exception(error)
