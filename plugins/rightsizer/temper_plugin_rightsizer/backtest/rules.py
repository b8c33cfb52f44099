"""The rules that a replay compares: ours, and the usual ones of other tools.

The others follow published defaults: KRR's ``simple`` strategy (P95 of CPU, the largest memory and
15 %), and the recommender of the Vertical Pod Autoscaler (P90 of a histogram that decays with a
half-life of a day, 15 %, and a bump after an OOM kill). ``Peak`` is what no demand ever exceeded.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import define, field, frozen

from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.options import USUAL, AdviceOptions
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.backtest.samples import Step
from temper_plugin_rightsizer.demand.day_before import hours_to_come
from temper_plugin_rightsizer.demand.histogram import DemandHistogram
from temper_plugin_rightsizer.demand.interval import (
    IntervalDemand,
    cpu_histogram,
    memory_histogram,
)

HOUR_S = 3600
DAY_S = 24 * HOUR_S
MIB = 1024 * 1024
WEIGHT_UNIT = 1000
"""Decayed seconds are counted in thousandths."""


@frozen
class Sizing:
    """The request of a container: CPUs, and bytes of memory (0 if unknown)."""

    cpu: float
    memory_bytes: float


class Rule(Protocol):
    """Learns the steps of one container in the order of time."""

    def learn(self, step: Step) -> None:
        """Take in a step that is over."""

    def sizing(self) -> Sizing:
        """Return the requests for the steps that follow."""


@define
class ThreadRule:
    """Temper's rule, by the steps of the last *window_s* seconds, and the peak of memory of all.

    The steps of the day before that followed this time of day count as well.
    """

    window_s: int = 6 * HOUR_S
    options: AdviceOptions = USUAL
    _steps: deque[tuple[int, IntervalDemand]] = field(factory=deque, init=False)
    _former: IntervalDemand = field(factory=IntervalDemand, init=False)

    def learn(self, step: Step) -> None:
        """Take in a step. Of those before the last day the peak of memory is kept."""
        self._steps.append((step.at, step.merged()))
        while self._steps[0][0] <= step.at - max(self.window_s, DAY_S):
            self._former.take_peak(self._steps.popleft()[1])

    def sizing(self) -> Sizing:
        """Return the advice for a container without requests and limits."""
        demand = self._demand()
        wanted = advise(demand, Resources(), self.options).recommended
        return Sizing((wanted.cpu_request_millis or 0) / 1000, wanted.memory_request_bytes or 0)

    def _demand(self) -> IntervalDemand:
        newest = self._steps[-1][0] if self._steps else 0
        to_come = len(hours_to_come(newest, self.window_s))
        demand = IntervalDemand()
        demand.take_peak(self._former)
        for at, each in self._steps:
            if at > newest - self.window_s:
                demand.merge(each)
            else:
                demand.take_peak(each)
                if at <= newest - DAY_S + to_come:
                    demand.add_day_before(each)
        return demand


@define
class PercentileRule:
    """A percentile of all CPU, and the largest memory with a margin: KRR's ``simple``."""

    percentile: float = 0.95
    memory_margin: float = 1.15
    _cpu: DemandHistogram = field(factory=cpu_histogram, init=False)
    _peak_bytes: float = field(default=0.0, init=False)

    def learn(self, step: Step) -> None:
        """Take in a step."""
        demand = step.merged().whole()
        self._cpu.merge(demand.cpu)
        self._peak_bytes = max(self._peak_bytes, peak_bytes(demand))

    def sizing(self) -> Sizing:
        """Return the percentile, and the peak with the margin."""
        return Sizing(self._cpu.percentile(self.percentile), self.memory_margin * self._peak_bytes)


@define
class DecayedRule:
    """A percentile of a decaying histogram with a margin: the Vertical Pod Autoscaler's.

    Memory follows from the peaks of days. After an OOM kill the peak counts as 1.2 times as large,
    and 100 MiB larger at least.
    """

    percentile: float = 0.9
    margin: float = 1.15
    half_life_s: int = DAY_S
    _cpu: DemandHistogram = field(factory=cpu_histogram, init=False)
    _peaks: dict[int, float] = field(factory=dict, init=False)
    _at: int | None = field(default=None, init=False)

    def learn(self, step: Step) -> None:
        """Take in a step. Earlier steps count for less."""
        demand = step.merged().whole()
        if self._at is not None:
            self._cpu = _scaled(self._cpu, self._kept(step.at - self._at))
        self._at = step.at
        self._cpu.merge(_scaled(demand.cpu, WEIGHT_UNIT))
        day = step.at // DAY_S
        peak = peak_bytes(demand)
        if demand.counts.oom_kill:
            peak = max(1.2 * peak, peak + 100 * MIB)
        self._peaks[day] = max(self._peaks.get(day, 0.0), peak)

    def sizing(self) -> Sizing:
        """Return the percentiles with the margin."""
        peaks, newest = memory_histogram(), max(self._peaks, default=0)
        for day, peak in self._peaks.items():
            peaks.add(peak, round(WEIGHT_UNIT * self._kept((newest - day) * DAY_S)))
        return Sizing(
            self.margin * self._cpu.percentile(self.percentile),
            self.margin * peaks.percentile(self.percentile),
        )

    def _kept(self, passed_s: int) -> float:
        return float(0.5 ** (passed_s / self.half_life_s))


@define
class PeakRule:
    """The largest CPU and memory so far."""

    _cpu: float = field(default=0.0, init=False)
    _peak_bytes: float = field(default=0.0, init=False)

    def learn(self, step: Step) -> None:
        """Take in a step."""
        demand = step.merged().whole()
        self._cpu = max(self._cpu, demand.cpu.peak())
        self._peak_bytes = max(self._peak_bytes, peak_bytes(demand))

    def sizing(self) -> Sizing:
        """Return the peaks."""
        return Sizing(self._cpu, self._peak_bytes)


OURS = "temper"
RULES: Mapping[str, Callable[[], Rule]] = {
    OURS: ThreadRule,
    "percentile": PercentileRule,
    "decayed": DecayedRule,
    "peak": PeakRule,
}
"""Makes each rule by its name in the reports."""


def peak_bytes(demand: IntervalDemand) -> float:
    """Return the largest use of memory, 0 if it is not known."""
    return max(
        float(demand.counts.peak_bytes), demand.memory.peak() * (not demand.counts.peak_bytes)
    )


def _scaled(histogram: DemandHistogram, factor: float) -> DemandHistogram:
    scaled = {bucket: round(time * factor) for bucket, time in histogram.buckets.items()}
    return DemandHistogram(histogram.least, {key: time for key, time in scaled.items() if time})
