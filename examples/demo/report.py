"""Reports the walk: on a terminal, or to a test in a file."""

import json
import sys
import time
from pathlib import Path

from claims import CLAIMS


class Report:
    """Collects the outcomes of claims with their measurements, as soon as they are known.

    With a *path* every outcome is also written there as a line of JSON, which survives the guest.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._from = time.monotonic()
        self._failed = 0
        if path is not None:
            path.write_text("")

    @property
    def directory(self) -> Path | None:
        """Directory of the file of outcomes, for what else is to survive the guest."""
        return self._path.parent if self._path is not None else None

    @property
    def exit_code(self) -> int:
        """1 if a claim did not hold, else 0."""
        return 1 if self._failed else 0

    def step(self, title: str) -> None:
        """Begin a part of the walk."""
        self._say(f"\n[{time.monotonic() - self._from:5.1f} s] {title}")

    def tell(self, fact: str) -> None:
        """Print a remark."""
        self._say(f"    {fact}")

    def claim(self, name: str, holds: bool, measured: str) -> None:
        """Record whether the claim of that name holds, with its evidence."""
        self._failed += not holds
        self._say(f"  {'ok    ' if holds else 'FAILED'} {CLAIMS[name]}")
        self._say(f"           {measured}")
        self._write({"claim": name, "holds": holds, "measured": measured})

    def give_up(self, why: str) -> None:
        """Record why the walk ends early."""
        self._failed += 1
        self._say(f"  FAILED {why}")
        self._write({"gave_up": why})

    def _write(self, outcome: dict[str, object]) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(outcome) + "\n")

    def _say(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
