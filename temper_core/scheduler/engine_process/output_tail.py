"""The end of a child process's output: a thread drains its pipes into bounded memory."""

import os
import selectors
import threading
from collections.abc import Mapping
from contextlib import suppress

READ_BYTES = 65_536


class OutputTail:
    """Drains file descriptors until they end and keeps the last ``limit_bytes`` of each.

    It runs a thread, so that a child with much output never waits for a busy agent. The tail owns
    and closes the descriptors unless its constructor raises (OSError if no descriptor is left,
    RuntimeError if no thread can be started).
    """

    def __init__(self, descriptors: Mapping[str, int], limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._kept = {name: bytearray() for name in descriptors}
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(
            target=self._drain, args=(dict(descriptors),), name="engine-output", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:
            os.close(self._wake)
            raise

    @property
    def is_complete(self) -> bool:
        """Whether all output has been read."""
        return not self._thread.is_alive()

    def text(self, name: str) -> str:
        """Return the kept output of the descriptor called *name*."""
        with self._lock:
            tail = bytes(self._kept[name][-self._limit_bytes :])
        return tail.decode(errors="replace")

    def close(self) -> None:
        """Stop reading, even if a grandchild still holds the other end."""
        if self._wake < 0:
            return
        os.eventfd_write(self._wake, 1)
        self._thread.join(timeout=1.0)
        if self.is_complete:
            os.close(self._wake)
            self._wake = -1

    def _drain(self, descriptors: dict[str, int]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            for name, descriptor in descriptors.items():
                selector.register(descriptor, selectors.EVENT_READ, name)
            open_count = len(descriptors)
            while open_count:
                ready = [key for key, _ in selector.select()]
                if any(key.fileobj == self._wake for key in ready):
                    break
                for key in ready:
                    if not self._read(str(key.data), key.fd):
                        selector.unregister(key.fd)
                        open_count -= 1
        for descriptor in descriptors.values():
            os.close(descriptor)

    def _read(self, name: str, descriptor: int) -> bool:
        """Keep one chunk. Return whether more may follow."""
        chunk = b""
        with suppress(OSError):
            chunk = os.read(descriptor, READ_BYTES)
        with self._lock:
            tail = self._kept[name]
            tail += chunk
            if len(tail) > 2 * self._limit_bytes:
                del tail[: -self._limit_bytes]
        return bool(chunk)
