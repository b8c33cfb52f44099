"""From a counter of energy to power."""

from attrs import define

MICRO = 1_000_000
MOST_WATTS = 1000.0
"""Of one zone. A counter with a greater difference was reset, or has begun again more than once."""


@define
class EnergyMeter:
    """The power of one zone between two readings of its counter."""

    _before: tuple[float, int] | None = None

    def watts(self, now_s: float, energy_uj: int, range_uj: int) -> float | None:
        """Return the power since the last reading. None at the first, and where it is not known.

        *now_s* are seconds of a clock that never jumps.
        """
        before, self._before = self._before, (now_s, energy_uj)
        if before is None or now_s <= before[0]:
            return None
        elapsed_s = now_s - before[0]
        if range_uj and elapsed_s * MOST_WATTS > range_uj / MICRO:
            return None  # the counter may have begun again any number of times
        used_uj = used_between(before[1], energy_uj, range_uj)
        if used_uj is None:
            return None
        watts = used_uj / MICRO / elapsed_s
        return watts if watts <= MOST_WATTS else None

    def forget(self) -> None:
        """Begin anew, after a reading has failed."""
        self._before = None


def used_between(before_uj: int, after_uj: int, range_uj: int) -> int | None:
    """Return the energy between two readings, in microjoules. None if it is not known.

    A counter that has fallen has begun again at 0 after *range_uj*.
    """
    if after_uj >= before_uj:
        return after_uj - before_uj
    if not before_uj <= range_uj:
        return None
    return range_uj - before_uj + after_uj
