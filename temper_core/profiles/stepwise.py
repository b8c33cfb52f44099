"""Work in small steps, which the agent's loop does in several of its turns."""

import time
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

Result = TypeVar("Result")
Steps = Generator[None, None, Result]
"""Work that yields after each small step, and returns its result."""


def all_of(steps: Steps[Result]) -> Result:
    """Do all *steps*, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # it is the generator's Result


class StepwiseTask(Generic[Result]):
    """Does the steps of *begin* until they end, *longest_s* seconds at a time.

    The time is that of the clock, and not CPU time: it also bounds how long a slow disk holds the
    caller. A single step may exceed it.
    """

    def __init__(
        self,
        begin: Callable[[], Steps[Result]],
        longest_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._begin = begin
        self._longest_s = longest_s
        self._clock = clock
        self._steps: Steps[Result] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether steps have begun and not ended."""
        return self._steps is not None

    def restart(self) -> None:
        """Give up steps that have begun. The next ``advance`` begins anew."""
        self._steps = None

    def advance(self) -> Result | None:
        """Go on. Return the result once there is one, None before.

        What a step raises is raised, and the next call begins anew.
        """
        steps, self._steps = self._steps or self._begin(), None
        end = self._clock() + self._longest_s
        try:
            next(steps)
            while self._clock() < end:
                next(steps)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]  # it is the generator's Result
        self._steps = steps
        return None
