"""Keeps the last readings of the facility."""

import time
from collections.abc import Callable

from attrs import define, field

from temper_plugin_power.operating.facility import Facility

POLLS_KEPT = 3
"""After as many intervals without an answer the facility is not known."""


@define
class LastFacility:
    """The last answer. Any thread may use it."""

    poll_s: float
    clock: Callable[[], float] = time.monotonic
    _known: tuple[float, Facility] | None = field(default=None, init=False)

    def told(self, facility: Facility | None) -> None:
        """Note an answer. None is a failure, which leaves the last one."""
        if facility is not None:
            self._known = self.clock(), facility

    def current(self) -> Facility:
        """Return the last answer. Nothing is known if it is too old."""
        if self._known is None or self.clock() - self._known[0] > POLLS_KEPT * self.poll_s:
            return Facility()
        return self._known[1]
