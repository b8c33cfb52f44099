"""Logs in the instrument's state directory: one JSON object a line, one line a snapshot."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import define

from temper_core import InputError, StateDirectory

NAME = re.compile(r"delays-[0-9]{1,15}\.jsonl")


@define
class Logs:
    """The current log and the earlier ones.

    Lines are appended directly, so the agent trims the directory if it becomes too large.
    """

    state: StateDirectory
    largest_bytes: int
    _current: str = ""

    def append(self, at: float, delays: Mapping[str, float]) -> str:
        """Append a line. Return the name of the log that this closed, or an empty string."""
        self._current = self._current or f"delays-{int(at * 1000)}.jsonl"
        file = self.state.path / self._current
        with file.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"at": at, "delays": dict(delays)}) + "\n")
            is_full = log.tell() > self.largest_bytes
        closed, self._current = (self._current, "") if is_full else ("", self._current)
        return closed

    def sizes(self) -> dict[str, int]:
        """Return the size of each log by its name, oldest first."""
        files = sorted(file for file in self.state.path.iterdir() if NAME.fullmatch(file.name))
        return {file.name: file.stat().st_size for file in files}

    def file(self, name: str) -> Path:
        """Return the path of a log. Raise InputError if the name is invalid."""
        if not NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name of a log")
        return self.state.path / name

    def remove(self, name: str) -> bool:
        """Remove a log. Return whether it existed."""
        file = self.file(name)
        if not file.is_file():
            return False
        file.unlink()
        if name == self._current:
            self._current = ""
        return True
