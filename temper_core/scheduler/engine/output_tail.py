"""The last words of a child process: its pipes drained by a thread into bounded memory."""

import os
import selectors
import threading
from collections.abc import Mapping
from contextlib import suppress

READ_BYTES = 65_536


class OutputTail:
    """Drains file descriptors until they end, keeping the last ``limit_bytes`` of each.

    A thread of its own, so that a child that talks a lot never waits for a busy agent. The
    descriptors belong to the tail, which closes them, unless making it raises (OSError without a
    descriptor to spare, RuntimeError without a thread).
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
        """Whether everything that was ever written has been read."""
        return not self._thread.is_alive()

    def text(self, name: str) -> str:
        """Return what was kept of the descriptor called *name*."""
        with self._lock:
            kept = bytes(self._kept[name][-self._limit_bytes :])
        return kept.decode(errors="replace")

    def close(self) -> None:
        """Stop reading, also where a grandchild still holds the other end."""
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
            kept = self._kept[name]
            kept += chunk
            if len(kept) > 2 * self._limit_bytes:
                del kept[: -self._limit_bytes]
        return bool(chunk)
