"""The size of the agent and the engine: memory and descriptors."""

import os
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from temper_core.observe.descriptors import DescriptorBudget, KeptFile, read_once

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
READ_EVERY_S = 14.0
"""About the usual scrape interval. Opening a path below /proc costs as much as all the counting."""


@frozen
class Size:
    """Resident memory in bytes, and open descriptors of the agent."""

    memory_bytes: int = 0
    engine_memory_bytes: int = 0
    descriptors: int = 0


class SizeReader:
    """Reads sizes every ``READ_EVERY_S``, and returns the last ones in between."""

    def __init__(self, proc_root: Path | str, budget: DescriptorBudget) -> None:
        self._proc_root = str(proc_root)
        self._statm = KeptFile(f"{self._proc_root}/self/statm", budget)
        self._known = Size()
        self._engine_pid: int | None = None
        self._due = float("-inf")

    def read(self, now: float, engine_pid: int | None = None) -> Size:
        """Return the sizes. They are read anew if *now* a reading is due or the engine changed."""
        if now >= self._due or engine_pid != self._engine_pid:
            self._due, self._engine_pid = now + READ_EVERY_S, engine_pid
            engine = f"{self._proc_root}/{engine_pid}/statm"
            self._known = Size(
                _resident_bytes(self._statm.read),
                _resident_bytes(lambda: read_once(engine)) if engine_pid else 0,
                self._open_descriptors(),
            )
        return self._known

    def close(self) -> None:
        """Close the kept file."""
        self._statm.close()

    def _open_descriptors(self) -> int:
        folder = f"{self._proc_root}/self/fd"
        try:
            # Since Linux 6.2 the directory's size is the number. Listing it costs far more.
            return os.stat(folder).st_size or len(os.listdir(folder))  # noqa: PTH116, PTH208 - hot
        except OSError:
            return 0


def _resident_bytes(read: Callable[[], bytes]) -> int:
    try:
        return int(read().split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
