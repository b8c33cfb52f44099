"""A file of bounded size that is written in whole pieces."""

import io
import os


class StagedOutput(io.RawIOBase):
    """Holds back what is written until ``commit``, which refuses what would exceed the bound."""

    def __init__(self, descriptor: int, most_bytes: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._most_bytes = most_bytes
        self._staged = bytearray()
        self.size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: object) -> int:
        """Hold *content* back."""
        before = len(self._staged)
        self._staged += content  # type: ignore[arg-type]  # any buffer, as of every BinaryIO
        return len(self._staged) - before

    def commit(self, *, reserve: int = 0) -> bool:
        """Write what is held back, if *reserve* bytes fit after it. Otherwise discard it.

        Raises OSError.
        """
        staged = memoryview(bytes(self._staged))
        self._staged.clear()
        if self.size + len(staged) + reserve > self._most_bytes:
            return False
        while staged:
            written = os.write(self._descriptor, staged)
            self.size += written
            staged = staged[written:]
        return True
