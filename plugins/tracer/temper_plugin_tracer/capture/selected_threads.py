"""The selected threads, for recorders that cannot filter in the kernel."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from attrs import define, field

from temper_core import MachineError, directories_below
from temper_plugin_tracer.capture.living_threads import LivingThreads, shows_host
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.who_is_who import MOST_TIDS

NEEDS_HOST = "to select threads it needs the host's pid namespace (hostPID)"


@define(eq=False)
class SelectedThreads:
    """The threads of a selection, with those that they fork or that join their cgroups."""

    selection: Selection
    proc_root: str = "/proc"
    mask: np.ndarray = field(factory=lambda: np.zeros(MOST_TIDS, bool))

    @classmethod
    def of(cls, selection: Selection, proc_root: str = "/proc") -> "SelectedThreads | None":
        """Return the threads, None for the whole node. Raise MachineError if /proc hides them."""
        if selection.is_whole_node:
            return None
        if not shows_host(proc_root):
            raise MachineError(NEEDS_HOST)
        return cls(selection, proc_root)

    @classmethod
    def living(cls, selection: Selection, proc_root: str = "/proc") -> np.ndarray:
        """Return the names of all threads that live now, none where /proc is not the host's."""
        names = LivingThreads(proc_root).read()
        selected = cls(selection, proc_root)
        if len(names):
            selected.look()
        selected.mark(names)
        return names

    def look(self) -> None:
        """Add the threads that are in the selected processes and cgroups now."""
        for tid in self._now():
            self.mask[tid % MOST_TIDS] = True

    def fork(self, parent: int, child: int) -> None:
        """Add the child of a selected thread."""
        if self.mask[parent % MOST_TIDS]:
            self.mask[child % MOST_TIDS] = True

    def mark(self, names: np.ndarray) -> None:
        """Say in records of names which of the threads are selected."""
        names["is_selected"] = self.mask[names["tid"] % MOST_TIDS]

    def _now(self) -> Iterator[int]:
        for pid in self.selection.processes:
            with suppress(OSError):
                tasks = Path(self.proc_root, f"{pid}/task").iterdir()
                yield from (int(task.name) for task in tasks)
        for cgroup in self.selection.cgroups:
            for directory in directories_below(cgroup.path):
                with suppress(OSError):
                    text = Path(directory, "cgroup.threads").read_text()
                    yield from map(int, text.split())
