"""Statistics: percentiles of a run, the median and the spread of several runs."""

import statistics
from collections.abc import Sequence

from attrs import frozen

PERCENTILES = (50.0, 90.0, 99.0, 99.9)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value that *percent* of the ordered values do not exceed.

    Raise ValueError without values.
    """
    if not ordered:
        raise ValueError("no values")
    rank = -(-percent * len(ordered) // 100)
    return ordered[max(0, int(rank) - 1)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return percentiles, mean and maximum of *values*, empty without any."""
    if not values:
        return {}
    ordered = sorted(values)
    named = {f"p{percent:g}": round(percentile(ordered, percent), 4) for percent in PERCENTILES}
    return {
        **named,
        "max": round(ordered[-1], 4),
        "mean": round(statistics.fmean(ordered), 4),
    }


@frozen
class Spread:
    """The values of one measure in several runs."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def most(self) -> float:
        """The largest."""
        return max(self.values)

    def is_apart_from(self, other: "Spread") -> bool:
        """Whether every value of one is larger than every value of the other.

        One run has no spread, so nothing is apart from it.
        """
        if min(len(self.values), len(other.values)) < 2:  # noqa: PLR2004 - a spread takes two
            return False
        return self.least > other.most or self.most < other.least
