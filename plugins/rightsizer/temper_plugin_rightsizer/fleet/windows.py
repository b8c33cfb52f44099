"""The time that a report of a fleet covers."""

from collections.abc import Iterator

from attrs import frozen

from temper_plugin_rightsizer.demand.day_before import hours_to_come

RATE_STEPS = 2
"""The steps that a rate is taken over, so that two scrapes are in it."""


@frozen
class Window:
    """*steps* of *step_s* seconds, of which the last ends at *end*, in seconds."""

    end: int
    step_s: int
    steps: int

    @property
    def seconds(self) -> int:
        """The length."""
        return self.steps * self.step_s

    @property
    def rate_s(self) -> int:
        """The time that a rate is taken over."""
        return RATE_STEPS * self.step_s

    def at(self, step: int) -> int:
        """Return the time of *step*, of which the last is ``steps - 1``."""
        return self.end - (self.steps - 1 - step) * self.step_s

    def step_of(self, at: float) -> int:
        """Return the step at the time *at*. Raises ValueError if there is none."""
        step, rest = divmod(at - self.at(0), self.step_s)
        if rest or not 0 <= step < self.steps:
            raise ValueError("a sample is of another time")
        return int(step)

    def day_before(self) -> "Window | None":
        """Return the time of the day before that followed this time of day. None if it is short."""
        hours = hours_to_come(self.end, self.seconds)
        steps = len(hours) // self.step_s
        return Window(hours.stop, self.step_s, steps) if steps else None

    def pieces(self, most_steps: int) -> Iterator[tuple[int, int]]:
        """Yield the times of the first and last step of each piece of at most *most_steps*."""
        for first in range(0, self.steps, most_steps):
            yield self.at(first), self.at(min(first + most_steps, self.steps) - 1)
