"""A sequential test of paired gains, exact for every distribution of the noise.

A block measures the incumbent and the candidate in random order. If the candidate is no better, the
gain of the block is as likely ``x`` as ``-x``. Then the mean of ``exp(k x) / cosh(k x)`` over both
signs is 1 for every weight ``k`` (a sharper form of de la Pena, "A general class of exponential
inequalities for martingales and ratios", Annals of Probability 27, 1999). The product over blocks
is therefore a martingale, and it exceeds ``1 / a`` at any time with a probability of at most ``a``
(Ville 1939). So the test may stop after every block. The mean over several weights is a martingale
too (Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of
Mathematical Statistics 41, 1970).
"""

import math
from collections.abc import Iterable, Sequence

from attrs import define, field, frozen

RELATIVE_WEIGHTS = (0.5, 1.0, 2.0)
"""In units of 1 / noise. The best weight for gains of mean m and deviation s is m / s**2."""
LEAST_NOISE = 1e-4
"""A benchmark without any noise counts as one with this deviation of the gain."""
_LOG_2 = math.log(2.0)
_HALVINGS = 60


@define
class SignTest:
    """The evidence that gains are positive. ``noise`` is the deviation of a gain, set beforehand.

    A noise that is wrong costs blocks. It does not change the rate of false positives.
    """

    noise: float
    _logs: list[float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._logs = [0.0] * len(RELATIVE_WEIGHTS)

    def add(self, gain: float) -> None:
        """Count the gain of one more block."""
        scale = max(self.noise, LEAST_NOISE)
        for position, weight in enumerate(RELATIVE_WEIGHTS):
            self._logs[position] += log_factor(weight * gain / scale)

    @property
    def evidence(self) -> float:
        """The martingale: ``1 / a`` or more occurs with a probability of at most ``a``."""
        return sum(map(math.exp, self._logs)) / len(self._logs)


def log_factor(weighted: float) -> float:
    """Return ``log(exp(w) / cosh(w))`` without overflow."""
    if weighted < 0.0:
        return 2.0 * weighted + _LOG_2 - math.log1p(math.exp(2.0 * weighted))
    return _LOG_2 - math.log1p(math.exp(-2.0 * weighted))


def evidence_of(gains: Iterable[float], noise: float) -> float:
    """Return the evidence that *gains* are positive."""
    test = SignTest(noise)
    for gain in gains:
        test.add(gain)
    return test.evidence


@frozen
class Interval:
    """Bounds of a gain, as logarithms of ratios. Infinite with too few blocks."""

    low: float
    high: float


def interval(gains: Sequence[float], noise: float, error: float) -> Interval:
    """Return the gains that the test does not exclude, at any number of blocks.

    The true centre of the gains is outside with a probability of at most *error*, also if the
    number of blocks followed from the gains (Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform,
    nonparametric, nonasymptotic confidence sequences", Annals of Statistics 49, 2021).
    """
    low = _least_not_excluded(gains, noise, 2.0 / error)
    high = -_least_not_excluded([-gain for gain in gains], noise, 2.0 / error)
    return Interval(low, high)


def _least_not_excluded(gains: Sequence[float], noise: float, limit: float) -> float:
    """Return the largest shift whose removal leaves evidence of *limit*, by bisection."""
    scale = max(noise, LEAST_NOISE)
    far = min(gains, default=0.0) - 100.0 * scale
    if evidence_of((gain - far for gain in gains), noise) < limit:
        return -math.inf
    low, high = far, max(gains)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if evidence_of((gain - middle for gain in gains), noise) >= limit:
            low = middle
        else:
            high = middle
    return low
