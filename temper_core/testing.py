"""A kit for plugins' tests: a host with one plugin, its contract, samples, made files.

A suite uses it by ``pytest_plugins = ["temper_core.testing"]`` in its ``conftest.py``.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from temper_core.errors import MachineError
from temper_core.instruments.charges import InstrumentCharges
from temper_core.instruments.helper_calls import HelperCalls
from temper_core.instruments.helper_processes import HelperProcesses
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.state_directory import InstrumentDirectory
from temper_core.made_recordings import make_recording, recorded_snapshots
from temper_core.made_records import make_machine, make_pod, make_snapshot, make_thread
from temper_core.made_trees import (
    make_cgroup,
    make_hierarchy,
    make_process,
    make_sysfs,
    make_task,
    write_files,
)
from temper_core.plugin_contract import assert_keeps_contract
from temper_core.plugin_host import RECORDS, PluginHost
from temper_core.records.events import Event
from temper_core.records.instruments import MIB, HelperBounds, HelperProcess
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.profiles import WorkloadProfile
from temper_core.records.restored import Restored

__all__ = [
    "HOOKS",
    "MadeContext",
    "MadeTrial",
    "assert_keeps_contract",
    "host",
    "make_cgroup",
    "make_hierarchy",
    "make_machine",
    "make_pod",
    "make_process",
    "make_recording",
    "make_snapshot",
    "make_sysfs",
    "make_task",
    "make_thread",
    "recorded_snapshots",
    "write_files",
]

HOOKS = RECORDS


@pytest.fixture
def host() -> PluginHost:
    """Return a host without plugins, regardless of the installed ones."""
    return PluginHost()


@define(eq=False)
class MadeTrial:
    """A trial of a profile in a test, in force until it is released."""

    id: str
    profile: WorkloadProfile
    pods: tuple[str, ...]
    seconds: float
    _is_active: bool = True

    def is_active(self) -> bool:
        """Whether the trial has not been released."""
        return self._is_active

    def release(self) -> None:
        """End the trial."""
        self._is_active = False


@define
class MadeContext:
    """The context of an instrument in a test, which records the instrument's calls.

    Attributes:
        on_request: Called with the reason of each request for safe mode.
        on_release: Called for each release.
        on_restore: Called with the reason of each restore request, and the function to call
            afterwards.
        recorded: Kind, subject and reason of each event.
        node_events: The events that ``events_after`` returns. ``record`` adds to them.
        folder: The parent of the agent's state directory. ``state`` is a real one below it.
        state_limit_bytes: The bound on ``state``.
        with_processes: Whether a helper is a real process, which ``close()`` ends. Otherwise it is
            a call in this process, with the same rules for argument and result.
        charged: The parts that were charged. A charge without a part is an empty name.
        trials: The trial profiles, including released ones.
        has_neighbour: What ``is_beside_agent`` returns.
        has_request: What ``is_safe_mode_requested`` returns.
        standing_reason: What ``safe_mode_reason`` returns.

    """

    node: str = "node-1"
    on_request: Callable[[str], object] = lambda _reason: None
    on_release: Callable[[], object] = lambda: None
    on_restore: Callable[[str, Callable[[Restored], None]], object] = lambda _reason, _done: None
    machine: MachineShape = field(factory=make_machine)
    plan: LayerPlan | None = None
    recorded: list[tuple[str, str, str]] = field(factory=list)
    node_events: list[Event] = field(factory=list)
    folder: Path | None = None
    state_limit_bytes: int = 64 * MIB
    with_processes: bool = False
    charged: list[str] = field(factory=list)
    trials: list[MadeTrial] = field(factory=list)
    has_neighbour: bool = False
    has_request: bool = False
    standing_reason: str = ""
    _state: InstrumentDirectory | None = None
    _processes: HelperProcesses = field(factory=HelperProcesses)

    @property
    def lookup(self) -> PlanLookup:
        """Pods, cgroups and thread groups of ``plan``."""
        return PlanLookup(lambda: self.plan)

    def is_beside_agent(self) -> bool:
        """Return ``has_neighbour``."""
        return self.has_neighbour

    def is_safe_mode_requested(self) -> bool:
        """Return ``has_request``."""
        return self.has_request

    def request_safe_mode(self, reason: str) -> None:
        """Call ``on_request``."""
        self.on_request(reason)

    def safe_mode_reason(self) -> str:
        """Return ``standing_reason``."""
        return self.standing_reason

    def release_safe_mode(self) -> None:
        """Call ``on_release``."""
        self.on_release()

    def restore(self, reason: str, done: Callable[[Restored], None]) -> None:
        """Call ``on_restore``."""
        self.on_restore(reason, done)

    @property
    def state(self) -> InstrumentDirectory:
        """A directory of the instrument's own, below ``folder``."""
        if self.folder is None:
            raise MachineError("MadeContext(folder=tmp_path) has a state directory")
        if self._state is None:
            base = self.folder / "temper"
            self._state = InstrumentDirectory(base, "under-test", self.state_limit_bytes)
        return self._state

    def helper(
        self,
        entry_point: str,
        argument: Any = None,  # noqa: ANN401 - JSON
        bounds: HelperBounds | None = None,
    ) -> HelperProcess:
        """Run the function in a process of its own, or in this one."""
        start = self._processes.start if self.with_processes else HelperCalls().start
        return start("under-test", entry_point, argument, bounds or HelperBounds())

    def close(self) -> None:
        """End the helper processes."""
        self._processes.close()

    def charge(self, part: str = "") -> AbstractContextManager[None]:
        """Record the part. Raise InputError for an invalid name."""
        return InstrumentCharges(self._charged)("under-test", part)

    def _charged(self, line: str) -> AbstractContextManager[None]:
        self.charged.append(line.removeprefix("instrument_under-test").lstrip("_"))
        return nullcontext()

    def record(self, kind: str, subject: str = "", reason: str = "") -> None:
        """Record the event."""
        self.recorded.append((kind, subject, reason))
        number = len(self.recorded)
        self.node_events.append(Event(number, time.time(), kind, subject, reason, "made"))

    def events_after(self, number: int = 0) -> tuple[Event, ...]:
        """Return the events in ``node_events`` after *number*."""
        return tuple(event for event in self.node_events if event.number > number)

    def try_profile(
        self, profile: WorkloadProfile, pods: Sequence[str], seconds: float
    ) -> MadeTrial:
        """Record the trial. Its pods and profile are not checked as the agent would."""
        trial = MadeTrial(str(len(self.trials) + 1), profile, tuple(pods), seconds)
        self.trials.append(trial)
        return trial
