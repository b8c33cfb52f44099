"""A cumulative histogram in the sense of Prometheus."""

from bisect import bisect_left

from attrs import evolve, field, frozen

STOCK_SECONDS_BOUNDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@frozen
class Histogram:
    """Counts of values up to each of ``bounds``, and a last count for larger values."""

    bounds: tuple[float, ...] = STOCK_SECONDS_BOUNDS
    counts: tuple[int, ...] = field()
    total: float = 0.0

    @counts.default
    def _no_counts(self) -> tuple[int, ...]:
        return (0,) * (len(self.bounds) + 1)

    def with_value(self, value: float) -> "Histogram":
        """Return a histogram with *value* added."""
        slot = bisect_left(self.bounds, value)
        counts = tuple(count + (n == slot) for n, count in enumerate(self.counts))
        return evolve(self, counts=counts, total=self.total + value)
