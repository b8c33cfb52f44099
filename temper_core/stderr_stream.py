"""Writes lines to stderr without waiting for a reader that has stalled.

A pipe whose reader is frozen, a terminal that is halted by Ctrl-S, and a journal that waits for its
disk keep a blocking write(2) for ever. The agent's loop must go on then.
"""

import os
import select
import socket
import stat
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

WAIT_S = 1.0
"""How long the first line waits for a reader. Those after it do not wait until one reads again."""
SOCKET_WAIT_US = 10_000
"""How long one write to a socket waits."""
CHUNK_BYTES = 4096
"""PIPE_BUF of Linux: poll(2) reports that so much can be written to a pipe, see pipe(7)."""
_TIME = struct.Struct("ll")


def unblocking(descriptor: int) -> int:
    """Return another descriptor of the same file, whose writes wait for no reader.

    A pipe or a terminal is opened anew: with O_NONBLOCK the given descriptor would change for all
    processes that share it. A write to a socket waits for ``SOCKET_WAIT_US``: socket(7).
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or os.isatty(descriptor):
        with suppress(OSError):  # /proc is not mounted, or the file belongs to another user
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{descriptor}", flags)
    if stat.S_ISSOCK(mode):
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            bound = _TIME.pack(0, SOCKET_WAIT_US)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)
    return os.dup(descriptor)


class StderrStream:
    """A text stream to *descriptor*. Lines without a reader are dropped and counted.

    Once lines are read again, *note* makes the line that has the number of those that were dropped.
    """

    def __init__(self, descriptor: int, note: Callable[[int], str]) -> None:
        self._descriptor = unblocking(descriptor)
        self._note = note
        self._lock = threading.Lock()
        self._rest = b""
        self._dropped = 0
        self._has_stalled = False

    def write(self, text: str) -> int:
        """Write whole lines, or drop them. Never raises OSError."""
        with self._lock:
            if self._dropped and self._send(self._note(self._dropped)):
                self._dropped = 0
            if not self._send(text):
                self._dropped += text.count("\n")
        return len(text)

    def flush(self) -> None:
        """Do nothing: what was written is not kept."""

    def _send(self, text: str) -> bool:
        """Write *text* after the rest of the line before. Return whether it was begun."""
        self._rest = self._written(self._rest)
        if self._rest:
            return False
        content = text.encode(errors="backslashreplace")
        left = self._written(content)
        if left == content:
            return False
        self._rest = left
        return True

    def _written(self, content: bytes) -> bytes:
        """Write as much of *content* as there is room for. Return what is left."""
        while content and self._can_write():
            try:
                content = content[os.write(self._descriptor, content[:CHUNK_BYTES]) :]
            except OSError:  # another writer took the room, or the reader is gone
                break
        return content

    def _can_write(self) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        ready = poll.poll(0 if self._has_stalled else WAIT_S * 1000)
        self._has_stalled = not ready
        return bool(ready)
