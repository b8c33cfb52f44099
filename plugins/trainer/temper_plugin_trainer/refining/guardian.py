"""A process that outlives a killed ``temper train run``, to end its trial and its benchmark.

The run writes a line for each thing that it begins, such as ``trial 7``, ``group 4242`` or ``stock
NAME``, and ``none`` of the same kind when it has ended. When the pipe is closed, the guardian ends
what is left.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from temper_core import TemperError, load_settings
from temper_plugin_trainer.refining.trial_door import Door, way_here

NONE = "none"
TRIAL = "trial"
GROUP = "group"
STOCK = "stock"
REMOTE = "--remote"
ENDS_WITHIN_S = 20.0
TRIES, PAUSE_S = 3, 1.0


class Guardian:
    """Starts the process, and tells it what has begun and ended.

    A guardian of a remote run ends the benchmark alone. The relay in the agent's pod ends the rest.
    """

    def __init__(self, settings: Path | None = None, *, is_remote: bool = False) -> None:
        arguments = [REMOTE] if is_remote else [str(settings)] if settings else []
        # Its own session, so that neither Ctrl-C nor the end of the terminal reaches it. Without -P
        # modules are imported from the working directory, which may be another user's.
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-P", "-m", __spec__.name, *arguments],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def tell(self, kind: str, what: str = NONE) -> None:
        """Tell that *what* has begun, or that the last of *kind* has ended."""
        stream = self._stream
        with suppress(BrokenPipeError):
            stream.write(f"{kind} {what}\n".encode())
            stream.flush()

    def close(self) -> None:
        """End the process after it has ended what is left."""
        with suppress(BrokenPipeError):
            self._stream.close()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def _stream(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise ValueError("the guardian has no pipe")
        return self._process.stdin


def watch(lines: IO[str]) -> dict[str, str]:
    """Return what had begun and not ended at the end of *lines*."""
    begun: dict[str, str] = {}
    for line in lines:
        kind, _, what = line.strip().partition(" ")
        begun[kind] = what
    return {kind: what for kind, what in begun.items() if what != NONE}


def main(arguments: list[str]) -> None:
    """Wait for the end of the run, and end what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    is_remote = REMOTE in arguments
    settings = None if is_remote else load_settings(Path(arguments[0]) if arguments else None)
    left = watch(sys.stdin)
    if GROUP in left:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(int(left[GROUP]), signal.SIGKILL)
    if settings is None:
        return
    door = Door(way_here(settings), ())
    if TRIAL in left:
        _tried(lambda: door.release(left[TRIAL]))
    if STOCK in left:
        _tried(lambda: door.withdraw_stock(left[STOCK]))


def _tried(end: Callable[[], None]) -> None:
    """Call *end* until it succeeds, ``TRIES`` times at most: a busy agent may answer too late."""
    for _ in range(TRIES):
        with suppress(TemperError):
            end()
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1:])
