"""The readings of each arm of each trial: its values, and how long other pods waited."""

import statistics
from collections.abc import Sequence

from attrs import define, field, frozen

from temper_plugin_trainer.refining.climb import Reading, Visit
from temper_plugin_trainer.refining.trial_door import Look
from temper_plugin_trainer.refining.variants import Variant


@define
class OthersWait:
    """The CPUs that other pods wait for during one measurement.

    An observation counts once, whatever number of looks found it. The observation at the time
    *before*, the last one before the measurement, does not count.
    """

    before: str
    _waits: dict[str, float] = field(factory=dict, init=False)

    def add(self, look: Look) -> None:
        """Take *look* into account."""
        if look.at != self.before:
            self._waits[look.at] = look.waits

    @property
    def mean(self) -> float | None:
        """The mean over the observations, None without any."""
        return statistics.fmean(self._waits.values()) if self._waits else None


@frozen
class ArmReadings:
    """The values of an arm in the unit of the metric, and the CPUs that others waited for."""

    values: Sequence[float] = ()
    waits: Sequence[float] = ()


@define
class ReadingsByArm:
    """The readings of all arms, by trial, arm, and the arm that it was compared with."""

    _values: dict[tuple[int, str, str], list[float]] = field(factory=dict, init=False)
    _waits: dict[tuple[int, str, str], list[float]] = field(factory=dict, init=False)

    def add(self, visit: Visit, reading: Reading) -> None:
        """Take the answer to *visit* into account."""
        key = visit.trial, visit.variant.key, visit.other
        if reading.value is not None:
            self._values.setdefault(key, []).append(reading.value)
        if reading.others_wait is not None:
            self._waits.setdefault(key, []).append(reading.others_wait)

    def of(self, trial: int, variant: Variant, other: Variant) -> ArmReadings:
        """Return the readings of *variant* in the *trial* that compared it with *other*."""
        key = trial, variant.key, other.key
        return ArmReadings(self._values.get(key, ()), self._waits.get(key, ()))
