"""The time that all instruments together may take in one look of the agent."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field, frozen

DEADLINES = 2.0
"""Of one call, which all calls of a look have together. Safe mode waits for the look to end."""


@frozen
class Slowest:
    """The part of a plugin that took the most time of a look, and why that was too much."""

    plugin: str
    part: str
    reason: str


@define
class LookBudget:
    """Measures the calls of a look. *limit_s* is in seconds."""

    limit_s: float
    _spent_s: dict[tuple[str, str], float] = field(factory=dict, init=False)

    def begin(self) -> None:
        """Begin another look."""
        self._spent_s.clear()

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left for more calls."""
        return sum(self._spent_s.values()) >= self.limit_s

    @contextmanager
    def measured(self, plugin: str, part: str) -> Iterator[None]:
        """Count the time of a call."""
        began = time.monotonic()
        try:
            yield
        finally:
            spent = self._spent_s.get((plugin, part), 0.0)
            self._spent_s[plugin, part] = spent + time.monotonic() - began

    def slowest(self) -> Slowest:
        """Return what took most. There was a call."""
        (plugin, part), spent = max(self._spent_s.items(), key=lambda each: each[1])
        reason = f"took {spent:.1f} s of the {self.limit_s:g} s that all instruments have in a look"
        return Slowest(plugin, part, reason)
