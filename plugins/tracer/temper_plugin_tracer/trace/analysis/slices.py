"""Distributions of durations: eight buckets for each power of two of nanoseconds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BUCKETS", "bucket_of", "count_in_buckets", "powers", "quantile_ns", "under_ns"]

PARTS = 8
"""Buckets of one power of two: a bound is at most an eighth above the durations under it."""
HIGHEST_POWER = 44
"""Durations of 2^44 ns (4.9 hours) or more are in the last bucket."""
BUCKETS = (HIGHEST_POWER + 1) * PARTS


def bucket_of(ns: NDArray[Any]) -> NDArray[np.int64]:
    """Return the bucket of each duration in nanoseconds. Zero has the first."""
    mantissa, power = np.frexp(ns.astype(np.float64))
    part = ((mantissa - 0.5) * (2 * PARTS)).astype(np.int64)
    buckets = np.where(ns > 0, power.astype(np.int64) * PARTS + part, 0)
    return np.minimum(buckets, BUCKETS - 1)


def count_in_buckets(counts: NDArray[np.uint32], rows: NDArray[Any], ns: NDArray[Any]) -> None:
    """Add each duration to the distribution of its row."""
    np.add.at(counts, (rows, bucket_of(ns)), np.uint32(1))


def under_ns(bucket: int) -> int:
    """Return the nanoseconds that all durations of a bucket are below."""
    power, part = divmod(bucket, PARTS)
    if not bucket:
        return 1
    return -(-(1 << power) * (PARTS + part + 1) // (2 * PARTS))


def quantile_ns(counts: Sequence[int] | NDArray[Any], share: float, longest_ns: int) -> int | None:
    """Return a duration that *share* of all stay at or under, None without any.

    It is at most an eighth above the true one, and never above *longest_ns*.
    """
    sums = np.cumsum(np.asarray(counts, np.int64))
    if not sums[-1]:
        return None
    bucket = int(np.searchsorted(sums, share * sums[-1]))
    return min(under_ns(bucket), longest_ns) if bucket < BUCKETS - 1 else longest_ns


def powers(counts: NDArray[Any]) -> list[int]:
    """Return how many durations are below each power of two, 2^0 first, without empty ends."""
    sums = np.asarray(counts, np.int64).reshape(-1, PARTS).sum(axis=1).tolist()
    while sums and not sums[-1]:
        sums.pop()
    return list(sums)
