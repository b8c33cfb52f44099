"""The process numbers that the kernel has given out lately, without a walk through all of /proc."""

from pathlib import Path

from attrs import define, frozen


@frozen
class GivenNumbers:
    """Numbers given after *first*, up to *last*. None stands for an unknown one.

    The kernel gives them in ascending order, and begins again after the highest (``alloc_pid`` in
    kernel/pid.c). Threads take numbers too.
    """

    first: int | None
    last: int | None

    def __contains__(self, number: int) -> bool:
        """Whether a process of this number may be one of them."""
        if self.first is None or self.last is None:
            return True
        if self.first <= self.last:
            return self.first < number <= self.last
        return number > self.first or number <= self.last

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return self.first is None or self.first != self.last


@define(eq=False)
class NumberWatch:
    """Knows the last given number from one look to the next."""

    _proc: Path
    _last: int | None = None

    def look(self) -> GivenNumbers:
        """Return the numbers that were given since the last look, all of them at the first."""
        before, self._last = self._last, self._last_given()
        return GivenNumbers(before, self._last)

    def _last_given(self) -> int | None:
        """Return the last field of /proc/loadavg (proc_loadavg(5)), None if there is none."""
        try:
            return int((self._proc / "loadavg").read_text().split()[-1])
        except (OSError, ValueError, IndexError):
            return None
