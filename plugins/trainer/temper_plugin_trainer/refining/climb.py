"""The climb: one parameter at a time, and only measured improvements are kept.

The climb asks for measurements one by one and knows nothing of agents or commands. It is a
function of its plan and of the values measured so far, so an interrupted climb is continued by
giving it the recorded values again.
"""

import math
import random
import statistics
from collections.abc import Callable, Generator, Sequence
from enum import StrEnum
from itertools import chain

from attrs import define, evolve, field, frozen

from temper_plugin_trainer.refining.sign_test import Interval, SignTest, evidence_of, interval
from temper_plugin_trainer.refining.variants import Variant, neighbours

FAMILY_ERROR = 0.05
"""Probability that the climb keeps anything, if no candidate is better than its incumbent."""
INTERVAL_ERROR = 0.05
CALIBRATIONS = 8
"""Measurements of the baseline at the start, after one that only warms up."""
LEAST_BLOCKS = 6
"""Blocks after which a candidate without any gain on average is given up."""
HOPELESS = 0.5
"""A candidate with less evidence than this after so many blocks is given up, too."""
CONFIRMATIONS = 10


class Verdict(StrEnum):
    """The outcome of a candidate."""

    KEPT = "kept"
    NOT_SHOWN = "not shown"
    NO_GAIN = "no gain"
    ENDED = "ended by a guard"
    NOT_IN_FORCE = "not in force"
    OUT_OF_TIME = "out of time"


@frozen
class Plan:
    """The limits of a climb. ``trials`` are candidates, ``blocks`` pairs of measurements each."""

    baseline: Variant
    start: Variant
    is_lower_better: bool = True
    other_starts: tuple[Variant, ...] = ()
    """First candidates that are tested before ``start``."""
    trials: int = 12
    blocks: int = 24
    seed: int = 1
    request_millis: int | None = None
    engine_runs: int = 3
    """Runs of the benchmark per measurement, if a change of arms needs an engine."""
    stock: Variant | None = None
    stock_blocks: int = 0
    """Blocks that compare the result with the stock scheduler. Each of them starts an engine."""

    @property
    def limit(self) -> float:
        """The evidence from which a candidate is kept: all trials share the error."""
        return self.trials / FAMILY_ERROR


@frozen
class Visit:
    """One measurement that the climb asks for: the mean of *runs* runs with *variant* in force."""

    variant: Variant
    trial: int
    block: int
    runs: int = 1
    is_confirmation: bool = False
    other: str = ""
    """The key of the arm that it is compared with, empty for the baseline at the start."""


@frozen
class Reading:
    """The answer to a visit. Without a value, *why* says what ended the trial.

    ``others_wait`` are the CPUs that other pods waited for meanwhile, None if it is not known.
    """

    value: float | None
    why: str = ""
    verdict: Verdict = Verdict.ENDED
    others_wait: float | None = None


@frozen
class Trial:
    """A candidate that was compared with the incumbent of its time.

    ``gains`` are logarithms of ratios, one per block: positive is better.
    """

    number: int
    candidate: Variant
    incumbent: Variant
    gains: tuple[float, ...]
    evidence: float
    verdict: Verdict
    noise: float
    why: str = ""

    @property
    def bounds(self) -> Interval:
        """The interval of the gain, as logarithms of ratios."""
        return interval(self.gains, self.noise, INTERVAL_ERROR)

    @property
    def gain(self) -> float:
        """The median of the gains, as a ratio: 0.1 is 10 % better. 0 without blocks."""
        return math.expm1(statistics.median(self.gains)) if self.gains else 0.0


@frozen
class Outcome:
    """The end of a climb. ``best`` is the baseline if nothing better was found."""

    plan: Plan
    best: Variant
    noise: float
    trials: tuple[Trial, ...]
    calibration: tuple[float, ...]
    confirmation: Trial | None = None
    confirmed: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Values of the baseline and of the best variant in the blocks of the confirmation."""
    stopped: str = ""
    against_stock: Trial | None = None
    """The result, which is the baseline if nothing is better, against the stock scheduler."""

    @property
    def is_better(self) -> bool:
        """Whether a profile was kept, and measured better once more on fresh blocks."""
        return self.confirmation is not None and self.confirmation.verdict is Verdict.KEPT


Climb = Generator[Visit, Reading, Outcome]


class _StoppedError(Exception):
    """A guard ended the climb while the baseline was measured."""


def climb(plan: Plan, told: Callable[[Trial], None] = lambda _: None) -> Climb:
    """Ask for measurements, and return the outcome. Call *told* with every trial that has ended."""
    state = _State(plan, told)
    try:
        yield from state.calibrate()
        yield from state.ascend()
    except _StoppedError as stop:
        return state.outcome(stopped=str(stop))
    outcome = state.outcome()
    if state.best is not plan.baseline:
        outcome = yield from state.confirm()
    return (yield from state.compare_with_stock(outcome))


@define
class _State:
    """A climb under way."""

    plan: Plan
    told: Callable[[Trial], None]
    best: Variant = field(init=False)
    noise: float = 0.0
    _trials: list[Trial] = field(factory=list, init=False)
    _calibration: list[float] = field(factory=list, init=False)
    _random: random.Random = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.best = self.plan.baseline
        self._random = random.Random(self.plan.seed)  # noqa: S311 - no secret

    def calibrate(self) -> Generator[Visit, Reading, None]:
        """Measure the noise of the baseline."""
        for block in range(CALIBRATIONS + 1):
            reading = yield Visit(self.plan.baseline, 0, block)
            if reading.value is None:
                raise _StoppedError(f"the baseline could not be measured: {reading.why}")
            if block:
                self._calibration.append(reading.value)
        self.noise = math.sqrt(2.0) * statistics.stdev(map(math.log, self._calibration))

    def ascend(self) -> Generator[Visit, Reading, None]:
        """Test the start, and then neighbours of the best until none is left or the budget ends."""
        while len(self._trials) < self.plan.trials:
            candidate = self._next_candidate()
            if candidate is None:
                return
            trial = yield from self._tested(candidate)
            self._trials.append(trial)
            self.told(trial)
            if trial.verdict is Verdict.KEPT:
                self.best = candidate
            if trial.verdict is Verdict.OUT_OF_TIME:
                return

    def _next_candidate(self) -> Variant | None:
        """Return an untested variant next to the best. A change that failed before comes last."""
        starts = (*self.plan.other_starts, self.plan.start)
        origins = starts if self.best is self.plan.baseline else (self.best,)
        tested = {self.plan.baseline.key, *(trial.candidate.key for trial in self._trials)}
        failed = {trial.candidate.change for trial in self._trials}
        beside = (neighbours(origin, self.plan.request_millis) for origin in origins)
        every = (*starts, *chain.from_iterable(beside))
        left = [variant for variant in every if variant.key not in tested]
        return min(left, key=lambda variant: variant.change in failed, default=None)

    def _tested(self, candidate: Variant) -> Generator[Visit, Reading, Trial]:
        """Compare *candidate* with the best so far, block by block."""
        test, gains = SignTest(self.noise), list[float]()
        verdict, why = Verdict.NOT_SHOWN, ""
        for block in range(self.plan.blocks):
            answer = yield from self._block(candidate, self.best, block)
            if isinstance(answer, Reading):
                verdict, why = answer.verdict, answer.why
                break
            gains.append(answer[0])
            test.add(answer[0])
            if test.evidence >= self.plan.limit:
                verdict = Verdict.KEPT
                break
            if _is_hopeless(gains, test.evidence):
                verdict = Verdict.NO_GAIN if sum(gains) <= 0.0 else Verdict.NOT_SHOWN
                break
        return self._trial(candidate, self.best, gains, verdict, why)

    def _block(
        self, candidate: Variant, other: Variant, block: int, *, is_confirmation: bool = False
    ) -> Generator[Visit, Reading, Reading | tuple[float, float, float]]:
        """Measure both in random order. Return the gain and both values, or what ended it."""
        needs_engine = candidate.layer_needs != other.layer_needs
        runs = self.plan.engine_runs if needs_engine else 1
        order = [candidate, other]
        if self._random.random() < 0.5:  # noqa: PLR2004 - a fair coin
            order.reverse()
        values: dict[str, float] = {}
        for variant in order:
            number = len(self._trials) + 1
            against = other if variant is candidate else candidate
            reading = yield Visit(variant, number, block, runs, is_confirmation, against.key)
            if reading.value is None:
                return reading
            values[variant.key] = reading.value
        gain = math.log(values[other.key] / values[candidate.key])
        signed = gain if self.plan.is_lower_better else -gain
        return signed, values[other.key], values[candidate.key]

    def confirm(self) -> Climb:
        """Measure the best against the baseline on fresh blocks: those that chose it flatter it."""
        pairs, gains, why = list[tuple[float, float]](), list[float](), ""
        for block in range(CONFIRMATIONS):
            baseline = self.plan.baseline
            answer = yield from self._block(self.best, baseline, block, is_confirmation=True)
            if isinstance(answer, Reading):
                why = answer.why
                break
            gains.append(answer[0])
            pairs.append(answer[1:])
        verdict = Verdict.ENDED if why else Verdict.NOT_SHOWN
        if not why and statistics.median(gains) > 0.0:
            verdict = Verdict.KEPT
        trial = self._trial(self.best, self.plan.baseline, gains, verdict, why)
        before, after = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        return self.outcome(trial, (before, after))

    def compare_with_stock(self, outcome: Outcome) -> Climb:
        """Measure the result against the stock scheduler, if the plan asks for it."""
        stock, gains, why = self.plan.stock, list[float](), ""
        if stock is None or not self.plan.stock_blocks:
            return outcome
        result = self.best if outcome.is_better else self.plan.baseline
        for block in range(self.plan.stock_blocks):
            answer = yield from self._block(result, stock, block, is_confirmation=True)
            if isinstance(answer, Reading):
                why = answer.why
                break
            gains.append(answer[0])
        verdict = Verdict.ENDED if why else Verdict.NOT_SHOWN
        trial = self._trial(result, stock, gains, verdict, why)
        return evolve(outcome, against_stock=trial)

    def _trial(
        self,
        candidate: Variant,
        incumbent: Variant,
        gains: Sequence[float],
        verdict: Verdict,
        why: str,
    ) -> Trial:
        return Trial(
            number=len(self._trials) + 1,
            candidate=candidate,
            incumbent=incumbent,
            gains=tuple(gains),
            evidence=evidence_of(gains, self.noise),
            verdict=verdict,
            noise=self.noise,
            why=why,
        )

    def outcome(
        self,
        confirmation: Trial | None = None,
        confirmed: tuple[tuple[float, ...], tuple[float, ...]] = ((), ()),
        stopped: str = "",
    ) -> Outcome:
        """Return the end of the climb."""
        return Outcome(
            self.plan,
            self.best,
            self.noise,
            tuple(self._trials),
            tuple(self._calibration),
            confirmation,
            confirmed,
            stopped,
        )


def _is_hopeless(gains: Sequence[float], evidence: float) -> bool:
    """Whether more blocks would hardly help. Stopping early never keeps a candidate."""
    return len(gains) >= LEAST_BLOCKS and (sum(gains) <= 0.0 or evidence < HOPELESS)
