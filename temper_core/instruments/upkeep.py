"""The agent's background work for its instruments: bounds and costs."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import structlog
from attrs import frozen

from temper_core.directory_tree import TreeSize
from temper_core.errors import TemperError
from temper_core.instruments.charges import free_of_charge
from temper_core.instruments.helper_processes import HelperCost, HelperProcesses
from temper_core.instruments.state_directory import (
    InstrumentDirectory,
    SweepResult,
    Writing,
    always,
)
from temper_core.records.snapshots import InstrumentCost

SWEEP_S = 60.0
"""The period of measuring state directories, because files may be written there directly."""
FIRST_SWEEP_S = 1.0
"""The time from an instrument's opening to the first measurement of its state directory."""
END_S = 1.0
KIB = 1024
MIB = 1024 * KIB

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Record = Callable[[str, str, str], None]
"""Records an event: its kind, subject and reason."""


class Upkeep(Protocol):
    """The costs and defects of instruments, and the end of their background work."""

    @property
    def defects(self) -> tuple[str, ...]:
        """Files removed because of bounds, one line per instrument."""
        ...

    def costs(self) -> Mapping[str, InstrumentCost]:
        """Return the cost of each instrument outside the agent's own process."""
        ...

    def close(self) -> None:
        """End every helper process, and stop measuring."""
        ...


@frozen
class NoUpkeep:
    """An upkeep for tests, and for agents without instruments."""

    defects: tuple[str, ...] = ()

    def costs(self) -> Mapping[str, InstrumentCost]:
        """Return nothing."""
        return {}

    def close(self) -> None:
        """Do nothing."""


NO_UPKEEP = NoUpkeep()


class StateDirectories:
    """The state directories of all instruments below *base*, and the thread that measures them."""

    def __init__(
        self,
        base: Path,
        *,
        writing: Writing = always,
        record: Record = lambda _kind, _subject, _reason: None,
        charge: Callable[..., AbstractContextManager[None]] = free_of_charge,
    ) -> None:
        self._base = base
        self._writing = writing
        self._record = record
        self._charge = charge
        self._directories: dict[str, InstrumentDirectory] = {}
        self._sizes: dict[str, TreeSize] = {}
        self._defects: dict[str, str] = {}
        self._is_ending = threading.Event()
        self._is_due = threading.Event()
        self._thread: threading.Thread | None = None

    def of(self, name: str, limit_bytes: int) -> InstrumentDirectory:
        """Return the directory of the instrument *name*, which is measured from now on."""
        directory = InstrumentDirectory(self._base, name, limit_bytes, self._writing)
        self._directories = {**self._directories, name: directory}
        self._is_due.set()
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="instrument-state", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                log.warning("state_not_measured", reason=str(error))
            else:
                self._thread = thread
        return directory

    @property
    def defects(self) -> tuple[str, ...]:
        """The directories that exceeded their bounds at the last measurement."""
        return tuple(self._defects.values())

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """Return the last measured size of each directory and its bound, in bytes."""
        return {
            name: (size.size_bytes, self._directories[name].limit_bytes)
            for name, size in tuple(self._sizes.items())
        }

    def sweep(self) -> None:
        """Measure each directory, and trim those over their bounds."""
        for name, directory in self._directories.items():
            with self._charge(name):
                size, trimmed = directory.measure(), directory.trim()
                if trimmed is not None:
                    size = trimmed.left
            self._sizes = {**self._sizes, name: size}
            self._note(name, size, trimmed)

    def close(self) -> None:
        """Stop measuring."""
        self._is_ending.set()
        self._is_due.set()
        if self._thread is not None:
            self._thread.join(timeout=END_S)

    def _serve(self) -> None:
        while not self._is_ending.is_set():
            if self._is_due.wait(SWEEP_S) and self._is_ending.wait(FIRST_SWEEP_S):
                return
            self._is_due.clear()
            self.sweep()

    def _note(self, name: str, size: TreeSize, trimmed: SweepResult | None) -> None:
        defects = dict(self._defects)
        defects.pop(name, None)
        if trimmed is not None:
            limit = self._directories[name].limit_bytes
            reason = (
                f"{trimmed.files} of its oldest files removed, {_size(trimmed.size_bytes)}: "
                f"it may hold {_size(limit)}, and holds {_size(size.size_bytes)} now"
            )
            log.warning("state_trimmed", instrument=name, files=trimmed.files, reason=reason)
            self._tell(name, reason)
            defects[name] = f"instrument {name}: state directory: {reason}"
        elif not size.is_whole:
            defects[name] = f"instrument {name}: state directory: not all of it could be measured"
        self._defects = defects

    def _tell(self, name: str, reason: str) -> None:
        try:
            self._record("state_trimmed", f"instrument {name}", reason)
        except TemperError as error:
            log.warning("event_not_recorded", kind="state_trimmed", reason=str(error))


class InstrumentUpkeep:
    """Implements ``Upkeep`` over state directories and helper processes."""

    def __init__(self, states: StateDirectories, helpers: HelperProcesses) -> None:
        self._states = states
        self._helpers = helpers
        self._before: Mapping[str, HelperCost] = {}
        self._before_at = time.monotonic()

    @property
    def defects(self) -> tuple[str, ...]:
        """Files removed because of bounds, one line per instrument."""
        return self._states.defects

    def costs(self) -> Mapping[str, InstrumentCost]:
        """Return the cost of each instrument. The CPU ratio covers the time since the last call."""
        now, sizes, helpers = time.monotonic(), self._states.sizes(), self._helpers.costs()
        before, window_s = self._before, now - self._before_at
        self._before, self._before_at = helpers, now
        costs = {}
        for name in sorted({*sizes, *helpers}):
            state_bytes, limit_bytes = sizes.get(name, (0, 0))
            helper = helpers.get(name, HelperCost())
            spent_s = helper.cpu_s - before.get(name, HelperCost()).cpu_s
            costs[name] = InstrumentCost(
                helpers=helper.running,
                helper_cpu_ratio=max(0.0, spent_s / window_s) if window_s > 0 else 0.0,
                helper_cpu_s=helper.cpu_s,
                helper_memory_bytes=helper.memory_bytes,
                state_bytes=state_bytes,
                state_limit_bytes=limit_bytes,
            )
        return costs

    def close(self) -> None:
        """End every helper process, and stop measuring."""
        self._helpers.close()
        self._states.close()


def _size(size_bytes: int) -> str:
    if size_bytes < MIB:
        return f"{size_bytes / KIB:.3g} KiB"
    return f"{size_bytes / MIB:.4g} MiB"
