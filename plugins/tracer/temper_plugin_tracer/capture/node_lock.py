"""One capture at a time on a node, across all agents of the host that share a directory."""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define

DIRECTORY = Path("/run/temper")
NAME = "trace.lock"
LARGEST_NOTE = 4096
ATTEMPTS = 10


@define(eq=False)
class NodeLock:
    """A lock of the kernel (flock), which it releases when its holder ends, however that ends.

    The file's content is the holder. Without a directory to write to there is no lock. A directory
    that the lock has made goes with it, so that an agent with other directories leaves none.
    """

    directory: Path = DIRECTORY
    _descriptor: int = -1
    _made_directory: bool = False

    def take(self, note: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Take the lock and write *note* into it. Return the holder's note if it is taken."""
        for _ in range(ATTEMPTS):
            try:
                descriptor = self._opened()
            except FileNotFoundError:
                continue  # its holder removed the directory between the two calls
            except OSError:
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = _note(descriptor)
                os.close(descriptor)
                return holder
            if self._is_at_its_path(descriptor):
                with suppress(OSError):
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, json.dumps(note).encode(), 0)
                self._descriptor = descriptor
                return None
            os.close(descriptor)  # its holder removed the file between the two calls
        return {}

    def release(self) -> None:
        """Release it. A second call does nothing."""
        if self._descriptor >= 0:
            with suppress(OSError):  # while it is locked, so that no process locks a removed file
                (self.directory / NAME).unlink()
            if self._made_directory:
                with suppress(OSError):  # another agent uses it by now
                    self.directory.rmdir()
            os.close(self._descriptor)
            self._descriptor, self._made_directory = -1, False

    def _opened(self) -> int:
        self._made_directory |= not self.directory.exists()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(self.directory / NAME, flags, 0o600)

    def _is_at_its_path(self, descriptor: int) -> bool:
        with suppress(OSError):
            return os.path.samestat(
                os.fstat(descriptor), (self.directory / NAME).stat(follow_symlinks=False)
            )
        return False


def _note(descriptor: int) -> Mapping[str, Any]:
    with suppress(OSError, ValueError):
        note = json.loads(os.pread(descriptor, LARGEST_NOTE, 0))
        if isinstance(note, dict):
            return note
    return {}
