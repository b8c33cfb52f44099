"""How long the wall clock has not jumped."""

from attrs import define, field

JUMP_S = 60.0
"""The clock has jumped if it moved so much more or less than the monotonic clock did between two
looks. NTP corrects less than that by slewing."""


@define
class SteadyClock:
    """Compares the wall clock with the monotonic clock, which cannot be set."""

    _ahead_s: float | None = field(default=None, init=False)
    _since_s: float = field(default=0.0, init=False)

    def note(self, at: float, monotonic_s: float) -> None:
        """Take the time of a look, by both clocks."""
        ahead_s = at - monotonic_s
        if self._ahead_s is None or abs(ahead_s - self._ahead_s) > JUMP_S:
            self._since_s = monotonic_s
        self._ahead_s = ahead_s

    def steady_s(self, monotonic_s: float) -> float:
        """Return the seconds since the last jump, or since the first look."""
        return 0.0 if self._ahead_s is None else monotonic_s - self._since_s
