"""A time that calls into several plugins share, such as all calls of one look of the agent."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from attrs import define, field

from temper_core.plugin_host.hosted_plugin import Busy

DEADLINES_OF_A_LOOK = 2.0
"""Of one call, which all calls of a look have together. Safe mode waits for the look to end."""

Returned = TypeVar("Returned")


class GuardedCalls(Protocol):
    """The methods of the plugin host that call a plugin, and set a part of it aside."""

    @property
    def call(self) -> Callable[..., Any]:
        """Call a function of a plugin, as ``PluginHost.call``."""
        ...

    def note_end(self, plugin: str, part: str, failure: str = "", *, is_hung: bool = False) -> None:
        """Set *part* aside with *is_hung*."""
        ...

    def why_lost(self, plugin: str, part: str) -> str:
        """Return why *part* was set aside. Empty if it was not."""
        ...


@define(eq=False)
class SharedTime:
    """Calls plugins until *limit_s* seconds are spent, and then sets aside what took the most.

    Each call has the deadline of *host* in any case. Without this bound, many calls that are each
    in time add up. *whose* completes the reason: ``of the 10 s that ... have in a look``.
    """

    host: GuardedCalls
    limit_s: float
    whose: str
    clock: Callable[[], float] = time.monotonic
    _spent_s: dict[tuple[str, str], float] = field(factory=dict, init=False)

    def begin(self) -> None:
        """Begin again, with the whole time."""
        self._spent_s.clear()

    def call(
        self,
        plugin: str,
        function: Callable[..., Returned],
        *arguments: Any,  # noqa: ANN401 - whatever the function takes
        part: str,
        **options: Any,  # noqa: ANN401 - those of the host
    ) -> Returned:
        """Call as the host does. Raise Busy if the time is spent, which is no failure of *plugin*.

        A part that was set aside for the time stays set aside.
        """
        if self._is_spent:
            raise Busy(plugin, f"was not called: others took {self._allowance}")
        try:
            with self._measured(plugin, part):
                returned: Returned = self.host.call(
                    plugin, function, *arguments, part=part, **options
                )
                return returned
        finally:
            if self._is_spent:
                self._set_slowest_aside()

    @property
    def _is_spent(self) -> bool:
        return sum(self._spent_s.values()) >= self.limit_s

    @property
    def _allowance(self) -> str:
        return f"the {self.limit_s:g} s that {self.whose}"

    @contextmanager
    def _measured(self, plugin: str, part: str) -> Iterator[None]:
        began = self.clock()
        try:
            yield
        finally:
            spent = self._spent_s.get((plugin, part), 0.0)
            self._spent_s[plugin, part] = spent + self.clock() - began

    def _set_slowest_aside(self) -> None:
        (plugin, part), spent = max(self._spent_s.items(), key=lambda entry: entry[1])
        if not self.host.why_lost(plugin, part):
            reason = f"took {spent:.1f} s of {self._allowance}"
            self.host.note_end(plugin, part, reason, is_hung=True)


def time_of_a_look(host: GuardedCalls, deadline_s: float) -> SharedTime:
    """Return the time that all instruments and invariants have in a look of the agent.

    *deadline_s* is that of one call.
    """
    return SharedTime(host, DEADLINES_OF_A_LOOK * deadline_s, "all plugins have in a look")
