"""The slope of a series with its uncertainty, and what it says about growth.

Samples a few seconds apart depend on each other. So the series is cut into blocks of equal
duration, and a line is fitted through the means of the blocks, which are taken as independent.
"""

import statistics
from collections.abc import Sequence
from math import sqrt
from typing import Literal

from attrs import frozen

BLOCKS = 20
STUDENT_T = 2.101
"""The 97.5 % quantile of Student's t with ``BLOCKS - 2`` degrees of freedom."""

Point = tuple[float, float]
"""A time in seconds, and the value then."""
Verdict = Literal["grows", "does not grow", "not decided"]


@frozen
class Block:
    """The samples of one of the equal parts of a series, and the mean of their times."""

    at_s: float
    values: tuple[float, ...]


@frozen
class Trend:
    """A slope, in units an hour, with its interval of 95 % confidence."""

    per_hour: float
    half_width: float

    @property
    def least(self) -> float:
        """The lower end of the interval."""
        return self.per_hour - self.half_width

    @property
    def most(self) -> float:
        """The upper end of the interval."""
        return self.per_hour + self.half_width

    def verdict(self, allowed_per_hour: float) -> Verdict:
        """Tell whether the series grows by more than is allowed, if the interval decides that."""
        if self.least > allowed_per_hour:
            return "grows"
        return "does not grow" if self.most <= allowed_per_hour else "not decided"


def blocks_of(series: Sequence[Point]) -> list[Block]:
    """Return the ``BLOCKS`` equal parts of *series*; raise ValueError where one has no sample."""
    if not series:
        raise ValueError("the series has no samples")
    first, last = series[0][0], series[-1][0]
    parts: list[list[Point]] = [[] for _ in range(BLOCKS)]
    width = (last - first) / BLOCKS or 1.0
    for at, value in series:
        parts[min(BLOCKS - 1, int((at - first) / width))].append((at, value))
    if not all(parts):
        raise ValueError(f"{len(series)} samples do not fill {BLOCKS} parts")
    return [
        Block(statistics.fmean(at for at, _ in part), tuple(value for _, value in part))
        for part in parts
    ]


def trend_of(series: Sequence[Point]) -> Trend:
    """Fit a line by least squares through the means of the blocks; raise ValueError as they do.

    The standard error is that of the slope in simple linear regression: the root of the mean
    squared residual, with ``BLOCKS - 2`` degrees of freedom, over the root of the sum of squared
    distances in time.
    """
    blocks = blocks_of(series)
    hours = [block.at_s / 3600 for block in blocks]
    means = [statistics.fmean(block.values) for block in blocks]
    slope, intercept = statistics.linear_regression(hours, means)
    residuals = (mean - intercept - slope * hour for hour, mean in zip(hours, means, strict=True))
    centre = statistics.fmean(hours)
    spread = sum((hour - centre) ** 2 for hour in hours)
    error = sqrt(sum(each**2 for each in residuals) / (BLOCKS - 2) / spread)
    return Trend(slope, STUDENT_T * error)
