"""One plugin in the host: its implementations, its account, and the only way to call its code."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from time import monotonic, perf_counter
from typing import Any, NoReturn

from attrs import define, field, frozen
from pluggy import HookImpl

from temper_core.errors import PluginError, TemperError
from temper_core.plugin_host.admission import admitted
from temper_core.plugin_host.call_memory import CallMemory
from temper_core.plugin_host.turn import Turn
from temper_core.plugin_host.worker import CallFailed, CallOverdue, Worker
from temper_core.records.snapshots import PluginState

MIB = 1024 * 1024
PAUSE_S = 10.0
"""How long a part is set aside at least after a call of a client that missed its deadline."""


class PluginStanding(StrEnum):
    """Whether a plugin is called. Some parts of one that is degraded are not.

    Degraded is only shown: a plugin with lost parts is active otherwise.
    """

    ACTIVE = "active"
    DEGRADED = "degraded"
    SET_ASIDE = "set_aside"
    NOT_ALLOWED = "not_allowed"


class NotActive(PluginError):  # noqa: N818 - reads as the fact it reports
    """The plugin was set aside earlier and is no longer called."""


class Busy(PluginError):  # noqa: N818 - reads as the fact it reports
    """The plugin is still in an earlier call. This call does not count as a failure."""


class Hung(PluginError):  # noqa: N818 - reads as the fact it reports
    """The plugin did not return by its deadline. Its thread is lost.

    ``is_busy`` is true if it computed rather than waited, as it would for a slow disk.
    """

    def __init__(self, plugin: str, reason: str, *, is_busy: bool = False) -> None:
        self.is_busy = is_busy
        super().__init__(plugin, reason)


class Oversized(PluginError):  # noqa: N818 - reads as the fact it reports
    """The call grew the agent by more memory than it may."""


@frozen
class _Pause:
    """A part that is set aside until *worker*'s call has ended, and at least until *until*."""

    worker: Worker
    until: float

    @property
    def is_over(self) -> bool:
        return not self.worker.is_running and monotonic() >= self.until


@define(eq=False)
class HostedPlugin:
    """A plugin, its thread, and its account. Calls into it are serialized.

    ``lost`` maps the parts that were set aside to the reason. The others are called as before.
    ``failures_in_a_row`` counts by part. Calls that belong to no part have the empty name.
    """

    name: str
    distribution: str = ""
    version: str = ""
    implementations: Mapping[str, tuple[HookImpl, ...]] = field(factory=dict)
    standing: PluginStanding = PluginStanding.ACTIVE
    failure: str = ""
    failures: int = 0
    failures_in_a_row: Counter[str] = field(factory=Counter)
    lost: dict[str, str] = field(factory=dict)
    calls: int = 0
    time_spent_s: float = 0.0
    warned_at: float | None = None
    memory: CallMemory = field(factory=CallMemory)
    _pauses: dict[str, _Pause] = field(factory=dict, init=False)
    _left_behind: Worker | None = field(default=None, init=False)
    _worker: Worker = field(init=False)
    _turn: Turn = field(factory=Turn, init=False)

    def __attrs_post_init__(self) -> None:
        self._worker = Worker(self.name)

    @property
    def is_active(self) -> bool:
        """Whether the plugin may be called."""
        return self.standing is PluginStanding.ACTIVE

    @property
    def takes_settings(self) -> bool:
        """Whether it declares settings, or a hook of it asks for them."""
        hooks = self.implementations
        asked = (argument for each in hooks.values() for impl in each for argument in impl.argnames)
        return "temper_settings" in hooks or "settings" in asked

    @property
    def is_left_behind(self) -> bool:
        """Whether the thread of a call that did not return in time still runs."""
        return self._left_behind is not None and self._left_behind.is_running

    def call(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        deadline_s: float,
        allows: tuple[type[TemperError], ...] = (),
        part: str = "",
        *,
        is_clients: bool = False,
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call *function*, which belongs to *part*, in the plugin's thread.

        With *is_clients* a client caused the call. It lets the agent's own calls pass. If it misses
        the deadline, the part is set aside only until the call has ended, and for ``PAUSE_S``:
        clients can slow the whole agent.

        Raises NotActive, Busy, Hung, Oversized, or PluginError from any error of the plugin. Errors
        that the contract *allows* are raised as copies of the core's own types.
        """
        if self._worker.is_current:  # a nested call: this thread already holds the turn
            return function(*arguments)
        self._refuse_inactive()
        if not self._turn.acquire(deadline_s, is_clients=is_clients):
            raise Busy(self.name, f"was in an earlier call for {deadline_s:g} s")
        try:
            self._refuse_inactive()
            self._end_pauses()
            if part in self.lost:
                raise NotActive(self.name, f"{part} is set aside: {self.lost[part]}")
            started, begun = perf_counter(), self.memory.begin()
            result, failed = None, None
            try:
                result = self._run(function, arguments, deadline_s)
            except Hung as error:
                self.set_aside(part, error.reason)  # before the next waiting call starts
                if is_clients and self._left_behind is not None:
                    self._pauses[part] = _Pause(self._left_behind, monotonic() + PAUSE_S)
                raise
            except CallFailed as failure:
                failed = failure
            finally:
                self.calls += 1
                self.time_spent_s += perf_counter() - started
                grown_bytes = self.memory.end(begun)
            self._refuse_growth(grown_bytes)
            if failed is not None:
                self._raise_failure(failed, allows)
            return result
        finally:
            self._turn.release()

    def attempt(
        self, function: Callable[..., Any], arguments: Sequence[Any], deadline_s: float
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call *function* although the plugin is set aside. It stays so. Raises Hung, PluginError.

        Other calls are refused meanwhile, and do not wait.
        """
        with self._turn:
            try:
                return self._run(function, arguments, deadline_s)
            except CallFailed as failed:
                self._raise_failure(failed)

    def _run(
        self, function: Callable[..., Any], arguments: Sequence[Any], deadline_s: float
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call *function* in the plugin's thread. Raises Hung, CallFailed."""
        try:
            return self._worker.run(function, arguments, deadline_s)
        except CallOverdue as overdue:
            self._left_behind, self._worker = self._worker, Worker(self.name)
            reason = f"did not return within {deadline_s:g} s{overdue.place}"
            raise Hung(self.name, reason, is_busy=overdue.is_busy) from overdue

    def _raise_failure(
        self, failed: CallFailed, allows: tuple[type[TemperError], ...] = ()
    ) -> NoReturn:
        allowed = failed.failure.error
        if allowed is not None and isinstance(allowed, allows):
            raise allowed from None
        raise PluginError(self.name, failed.failure.reason) from failed

    def _refuse_inactive(self) -> None:
        if not self.is_active:
            raise NotActive(self.name, f"is {self.standing}: {self.failure}")

    def _refuse_growth(self, grown_bytes: int) -> None:
        if grown_bytes > self.memory.bound_bytes:
            grown_mib, bound_mib = grown_bytes // MIB, self.memory.bound_bytes // MIB
            reason = f"grew the agent by {grown_mib} MiB in one call, of {bound_mib} MiB allowed"
            raise Oversized(self.name, reason)

    def set_aside(self, part: str, reason: str) -> None:
        """Stop calling *part*, or the whole plugin if *part* is empty."""
        if part:
            self.lost[part] = reason
        else:
            self.standing = PluginStanding.SET_ASIDE

    def _end_pauses(self) -> None:
        for part in [part for part, pause in list(self._pauses.items()) if pause.is_over]:
            self._pauses.pop(part, None)
            self.lost.pop(part, None)
            self.failures_in_a_row.pop(part, None)

    def revive(self) -> None:
        """Allow calls again into a plugin that was set aside."""
        with self._turn:
            self.standing = PluginStanding.ACTIVE
            self.failures_in_a_row.clear()

    def admit(self, load: Callable[[], object], deadline_s: float) -> None:
        """Load the plugin and its implementations. Raise PluginError if it does not fit."""
        self.take_in(self.call(admitted, (load, self.name), deadline_s))

    def take_in(self, implementations: Mapping[str, tuple[HookImpl, ...]]) -> None:
        """Take over the implementations of the loaded plugin, by hook."""
        self.implementations = implementations

    @property
    def _shown_standing(self) -> PluginStanding:
        return PluginStanding.DEGRADED if self.is_active and self.lost else self.standing

    def state(self) -> PluginState:
        """Return the account as a record."""
        self._end_pauses()
        return PluginState(
            name=self.name,
            version=self.version,
            distribution=self.distribution,
            hooks=tuple(sorted(self.implementations)),
            state=self._shown_standing.value,
            failure=self.failure,
            calls=self.calls,
            time_spent_s=self.time_spent_s,
            lost=tuple(f"{part}: {why}" for part, why in sorted(self.lost.items())),
        )
