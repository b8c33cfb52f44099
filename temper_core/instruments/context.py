"""The context of an instrument: its interface to the parts of the agent."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from attrs import evolve, frozen

from temper_core.errors import InputError
from temper_core.instruments.charges import free_of_charge
from temper_core.instruments.upkeep import NO_UPKEEP, Upkeep
from temper_core.plugin_host import plain_record, plain_text, plain_value
from temper_core.records.events import Event, EventKind
from temper_core.records.instruments import (
    HelperBounds,
    HelperProcess,
    NodeLookup,
    StateDirectory,
    Trial,
)
from temper_core.records.machine import MachineShape
from temper_core.records.profiles import WorkloadProfile
from temper_core.records.restored import Restored


class SafeModeDoor(Protocol):
    """Requests of instruments for safe mode, each in its own name."""

    def is_requested(self) -> bool:
        """Whether anybody requests safe mode. Waits for nothing."""
        ...

    def request(self, name: str, reason: str) -> None:
        """Request safe mode."""
        ...

    def reason(self, name: str) -> str:
        """Return the reason of the request for safe mode. Empty without one."""
        ...

    def release(self, name: str) -> None:
        """Withdraw the request, and a request to restore."""
        ...

    def restore(self, name: str, reason: str, done: Callable[[Restored], None]) -> None:
        """Request safe mode and a restoration. *done* is called after it."""
        ...


class HelperStarter(Protocol):
    """Starts helper processes, and ends those of an instrument that is closed."""

    def start(
        self,
        owner: str,
        entry_point: str,
        argument: Any,  # noqa: ANN401 - JSON
        bounds: HelperBounds,
    ) -> HelperProcess:
        """Run *entry_point* for the instrument *owner*."""
        ...

    def stop_all(self, owner: str) -> None:
        """End every helper of *owner*."""
        ...


class Trials(Protocol):
    """Puts trial profiles in force."""

    def start(
        self, owner: str, profile: WorkloadProfile, pods: Sequence[str], seconds: float
    ) -> Trial:
        """Put *profile* in force for *pods*."""
        ...

    def release_all(self, owner: str) -> None:
        """End every trial of *owner*."""
        ...


class Recorder(Protocol):
    """Keeps events."""

    def declare(self, source: str, kinds: Iterable[EventKind]) -> str:
        """Let the instrument *source* record *kinds*. Return the problems of refused ones."""
        ...

    def record(self, kind: str, subject: str = "", reason: str = "", *, source: str = "") -> None:
        """Record one event, of the agent's own kinds without a source."""
        ...

    def after(self, number: int = 0) -> tuple[Event, ...]:
        """Return the kept events after *number*, oldest first."""
        ...


@frozen
class AgentParts:
    """The parts of the agent that a context uses."""

    node: str
    machine: MachineShape
    lookup: NodeLookup
    safe_mode: SafeModeDoor
    helpers: HelperStarter
    trials: Trials
    recorder: Recorder
    state: Callable[[str, int], StateDirectory]
    charge: Callable[..., AbstractContextManager[None]] = free_of_charge
    upkeep: Upkeep = NO_UPKEEP
    is_beside_agent: Callable[[], bool] = lambda: False


def call_unguarded(function: Callable[[Restored], object], restored: Restored) -> None:
    """Call *function*, for tests without a plugin host."""
    function(restored)


class Context:
    """The context of the instrument *name*. Implements ``InstrumentContext``.

    Arguments are copied to plain types before they reach the agent, which keeps them, and compares
    them while it holds its locks. *answer* calls a function of the plugin under its deadline.
    """

    def __init__(
        self,
        name: str,
        parts: AgentParts,
        state: StateDirectory,
        answer: Callable[[Callable[[Restored], object], Restored], None] = call_unguarded,
    ) -> None:
        self._name = name
        self._parts = parts
        self._answer = answer
        self.node = parts.node
        self.machine = parts.machine
        self.lookup = parts.lookup
        self.state = state

    def is_beside_agent(self) -> bool:
        """Whether another agent of this host may enforce, and this one can run no engine."""
        return self._parts.is_beside_agent()

    def is_safe_mode_requested(self) -> bool:
        """Whether anybody requests safe mode, whatever else keeps the engine from running."""
        return self._parts.safe_mode.is_requested()

    def request_safe_mode(self, reason: str) -> None:
        """Request safe mode in the instrument's name. It lasts over restarts until released."""
        self._parts.safe_mode.request(self._name, _reason(reason))

    def safe_mode_reason(self) -> str:
        """Return the reason of the instrument's own request. Empty without one."""
        return self._parts.safe_mode.reason(self._name)

    def release_safe_mode(self) -> None:
        """Withdraw the request for safe mode, and a request to restore."""
        self._parts.safe_mode.release(self._name)

    def restore(self, reason: str, done: Callable[[Restored], None]) -> None:
        """Request safe mode, kept in memory only, and a restoration of the host."""
        answer = partial(self._answer, done)
        self._parts.safe_mode.restore(self._name, _reason(reason), answer)

    def charge(self, part: str = "") -> AbstractContextManager[None]:
        """Charge the calling thread's CPU time to the instrument's line of the overhead."""
        return self._parts.charge(self._name, plain_text(part))

    def record(self, kind: str, subject: str = "", reason: str = "") -> None:
        """Record an event of a kind that the instrument declares."""
        try:
            texts = [plain_text(value) for value in (kind, subject, reason)]
        except TypeError as error:
            raise InputError(f"an event is recorded by texts: {error}") from error
        self._parts.recorder.record(*texts, source=self._name)

    def events_after(self, number: int = 0) -> tuple[Event, ...]:
        """Return copies of the kept events after *number*, oldest first."""
        try:
            after = int(plain_value(number))
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"events follow a number: {error}") from error
        return tuple(map(evolve, self._parts.recorder.after(after)))

    def helper(
        self,
        entry_point: str,
        argument: Any = None,  # noqa: ANN401 - JSON
        bounds: HelperBounds | None = None,
    ) -> HelperProcess:
        """Run ``package.module:function`` of the plugin in a separate process."""
        plain = HelperBounds() if bounds is None else plain_record(bounds, HelperBounds)
        return self._parts.helpers.start(self._name, plain_text(entry_point), argument, plain)

    def try_profile(self, profile: WorkloadProfile, pods: Sequence[str], seconds: float) -> Trial:
        """Put *profile* in force for *pods* (keys) for *seconds*."""
        try:
            plain = plain_record(profile, WorkloadProfile)
            keys = tuple(plain_text(pod) for pod in pods)
            bound = plain_value(seconds)
        except (TypeError, ValueError) as error:
            raise InputError(f"a trial has a profile, pods and seconds: {error}") from error
        return self._parts.trials.start(self._name, plain, keys, bound)


def _reason(reason: object) -> str:
    """Return *reason* as plain text. A request for safe mode counts whatever its reason is."""
    try:
        return plain_text(reason)
    except TypeError:
        return "its reason is no text"
