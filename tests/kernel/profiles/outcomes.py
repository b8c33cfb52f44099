"""Says what held, to people and to the test."""

import json
import sys
import time
from pathlib import Path


class Report:
    """Every claim is told as soon as it is judged; with a *path* also as a line of JSON there."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.trace = path.with_name("switches") if path is not None else None
        self._began = time.monotonic()
        self.failed = 0

    def tell(self, fact: str) -> None:
        """Mention something on the way."""
        sys.stdout.write(f"[{time.monotonic() - self._began:6.1f} s] {fact}\n")
        sys.stdout.flush()

    def claim(self, name: str, holds: bool, measured: str) -> None:
        """Say whether a claim holds, and by what it was judged."""
        self.failed += not holds
        self.tell(f"{'ok    ' if holds else 'FAILED'} {name}: {measured}")
        if self._path is not None:
            with self._path.open("a") as file:
                line = {"claim": name, "holds": holds, "measured": measured}
                file.write(json.dumps(line) + "\n")
