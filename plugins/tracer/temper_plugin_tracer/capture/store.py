"""The captures that are kept: a trace and its summary each, in the instrument's directory."""

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core import InputError, parse_json, read_text
from temper_plugin_tracer.capture.bounds import MOST_KEPT, MOST_KEPT_BYTES
from temper_plugin_tracer.capture.flight_status import FLIGHT
from temper_plugin_tracer.capture.unlinked_file import PARTIAL

TRACE, SUMMARY, NODE, END = ".pftrace", ".json", ".node", ".end"
"""Suffixes: the trace, what is known of it, what the agent knew of the node, an order to end."""
ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}")
LARGEST_SUMMARY = 256 * 1024


def new_id() -> str:
    """Return the id of a new capture. Later ids sort after earlier ones."""
    return f"{_moment()}-{os.urandom(2).hex()}"


def _moment() -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())


@frozen
class Store:
    """The finished captures of *directory*. A capture is finished when its trace has a name."""

    directory: Path

    def ids(self) -> list[str]:
        """Return the ids, the newest first.

        An id of the future, from a clock that ran ahead, counts as old. Otherwise it would stay
        for ever, in place of later captures.
        """
        now = _moment()
        names = (path.name for path in self.directory.glob(f"*{TRACE}"))
        ids = (name.removesuffix(TRACE) for name in names)
        known = (each for each in ids if ID.fullmatch(each))
        return sorted(known, key=lambda each: (each[: len(now)] <= now, each), reverse=True)

    def trace(self, capture: str) -> Path | None:
        """Return the trace of a finished capture."""
        if not ID.fullmatch(capture):
            return None
        path = self.directory / f"{capture}{TRACE}"
        return path if path.is_file() and not path.is_symlink() else None

    def summary(self, capture: str) -> Mapping[str, Any]:
        """Return what is known of a finished capture: at least its id and the size."""
        document: Any = None
        path = self.directory / f"{capture}{SUMMARY}"
        with suppress(InputError):
            text = read_text(path, largest_bytes=LARGEST_SUMMARY)
            document = parse_json(text, source=str(path))
        size = 0
        with suppress(OSError):
            size = (self.directory / f"{capture}{TRACE}").stat().st_size
        known = document if isinstance(document, dict) else {}
        return {**known, "id": capture, "state": "finished", "bytes": size}

    def remove(self, capture: str) -> None:
        """Remove all files of a capture. A missing one is no error. Raises OSError."""
        for suffix in (TRACE, SUMMARY, NODE, END, FLIGHT):
            (self.directory / f"{capture}{suffix}").unlink(missing_ok=True)

    def make_room(
        self, size: int, *, most: int = MOST_KEPT, most_bytes: int = MOST_KEPT_BYTES
    ) -> list[str]:
        """Remove the oldest captures until one more of *size* bytes fits. Return their ids."""
        removed = []
        kept, used = 1, size
        for capture in self.ids():
            kept, used = kept + 1, used + self._size(capture)
            if kept > most or used > most_bytes:
                self.remove(capture)
                removed.append(capture)
        return removed

    def clean(self) -> list[str]:
        """Remove what an interrupted capture has left. Return the names of the files."""
        whole = {f"{capture}{suffix}" for capture in self.ids() for suffix in (TRACE, SUMMARY)}
        left = [
            path
            for path in self.directory.iterdir()
            if path.name not in whole and path.suffix in {SUMMARY, NODE, END, FLIGHT, PARTIAL}
        ]
        for path in left:
            path.unlink(missing_ok=True)
        return [path.name for path in left]

    def _size(self, capture: str) -> int:
        with suppress(OSError):
            return (self.directory / f"{capture}{TRACE}").stat().st_size
        return 0
