"""The gate of a warm swap: it holds a loaded engine back until the kernel is free for it.

The engine reads the kernel's ``sched_ext/state`` once per attach: when everything is loaded and
verified, just before it attaches (scx_layered 1.1.4, ``scx_ops_attach!``). In the mount namespace
of a gated engine a FIFO is mounted over that file, so that its open() blocks until the agent writes
a state word. An engine that re-attaches in place, as after CPU hotplug, blocks at the gate again.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from temper_core.errors import EngineError

FREE = "disabled"
"""The state word that lets the engine attach."""


SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Faults that pass. The next attempt may find room for the gate."""


class GateError(EngineError):
    """No gate can be made here, so that only a cold restart is possible."""


class Gate:
    """One FIFO for one engine. ``close`` removes the file and closes all descriptors.

    The FIFO needs its name only until the engine's launcher has mounted it. It is unlinked at the
    engine's first arrival, so that a killed agent leaves no file behind. Close the gate after the
    engine's process has ended: an engine whose read ends without a word attaches.
    """

    def __init__(self, path: Path) -> None:
        """Make the FIFO.

        Raises GateError if that fails, EngineError if it fails for a shortage.
        """
        self.path = path
        self._handle = -1
        self._writing = -1
        try:
            os.mkfifo(path, 0o600)
            self._handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            self.close()
            kind = EngineError if error.errno in SHORTAGES else GateError
            raise kind(f"no gate can be made at {path}: {error.strerror}") from error

    def look(self) -> bool:
        """Return whether the engine is at the gate. From then on it stays there.

        The gate keeps a descriptor open. Closing it would let the engine through, so only ``open``
        and ``close`` do.
        """
        if self._writing >= 0:
            return True
        if self._handle < 0:
            return False
        try:
            # Through its descriptor, as the FIFO has no name after the first arrival.
            path = f"/proc/self/fd/{self._handle}"
            self._writing = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.ENXIO, errno.EMFILE, errno.ENFILE):
                raise GateError(f"the gate {self.path} is broken: {error.strerror}") from error
            return False
        self._unlink()
        return True

    def open(self, word: str = FREE) -> None:
        """Let the engine read *word* as the kernel's state and go on.

        Raises GateError if it is not at the gate.
        """
        if not self.look():
            raise GateError("the engine is not at the gate")
        try:
            os.write(self._writing, f"{word}\n".encode())
        except OSError as error:
            raise GateError(f"the engine left the gate: {error.strerror}") from error
        finally:
            os.close(self._writing)
            self._writing = -1

    def close(self) -> None:
        """Remove the FIFO and close its descriptors."""
        self._unlink()
        for descriptor in (self._writing, self._handle):
            if descriptor >= 0:
                os.close(descriptor)
        self._writing = self._handle = -1

    def _unlink(self) -> None:
        with suppress(OSError):
            self.path.unlink()
