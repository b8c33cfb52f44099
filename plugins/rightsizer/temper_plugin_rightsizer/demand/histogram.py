"""Weighted histograms with exponential buckets, most of which are empty."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Self

from attrs import define, field

GROWTH = 1.05
"""The ratio of a bucket's upper bound to its lower one: the error of a percentile is below 5 %."""
_LOG_GROWTH = math.log(GROWTH)
_CONTINUES = 0x80
MOST_BUCKETS = 1024
"""A histogram of more buckets than any quantity here can fill is damaged."""


@define
class DemandHistogram:
    """Seconds spent at each value. Bucket 0 holds values below *least*, in the value's unit.

    Bucket *n* > 0 holds values from ``least * GROWTH**(n - 1)`` up to ``least * GROWTH**n``.
    """

    least: float
    buckets: dict[int, int] = field(factory=dict)

    def add(self, value: float, seconds: int) -> None:
        """Add a time of *seconds* at *value*."""
        bucket = self._bucket_of(value)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + seconds

    def merge(self, other: Self) -> None:
        """Add the content of a histogram with the same *least*."""
        if other.least != self.least:
            raise ValueError(f"cannot merge histograms from {other.least} and {self.least}")
        buckets = self.buckets
        for bucket, seconds in other.buckets.items():
            buckets[bucket] = buckets.get(bucket, 0) + seconds

    @property
    def seconds(self) -> int:
        """The time that the histogram covers."""
        return sum(self.buckets.values())

    def percentile(self, share: float) -> float:
        """Return a value that was not exceeded in *share* (0..1) of the time. 0 if it is empty.

        It is the upper bound of a bucket, so it is at most 5 % too large and never too small.
        """
        wanted, passed = share * self.seconds, 0
        for bucket in sorted(self.buckets):
            passed += self.buckets[bucket]
            if passed >= wanted:
                return self._upper_bound(bucket)
        return 0.0

    def peak(self) -> float:
        """Return the upper bound of the largest value. 0 if the histogram is empty."""
        return self._upper_bound(max(self.buckets, default=0))

    def mean(self) -> float:
        """Return the time-weighted mean, from the geometric middles of the buckets. 0 if empty."""
        seconds = self.seconds
        if not seconds:  # also one that was sent with buckets of no time
            return 0.0
        middles = (self._middle(bucket) * time for bucket, time in self.buckets.items())
        return sum(middles) / seconds

    def seconds_above(self, value: float) -> int:
        """Return the time in buckets whose middle is above *value*."""
        return sum(time for bucket, time in self.buckets.items() if self._middle(bucket) > value)

    def above(self, value: float) -> float:
        """Return how far the quantity was above *value*, summed over time: its unit times s."""
        return sum(max(self._middle(bucket) - value, 0) * s for bucket, s in self.buckets.items())

    def below(self, value: float) -> float:
        """Return how far the quantity was below *value*, summed over time: its unit times s."""
        return sum(max(value - self._middle(bucket), 0) * s for bucket, s in self.buckets.items())

    def encode(self) -> bytes:
        """Return the buckets as pairs of varints: the distance to the last bucket, seconds."""
        encoded, last = bytearray(), 0
        for bucket in sorted(self.buckets):
            _write_varint(encoded, bucket - last)
            _write_varint(encoded, self.buckets[bucket])
            last = bucket
        return bytes(encoded)

    @classmethod
    def decode(cls, least: float, encoded: bytes) -> Self:
        """Read what ``encode`` returned. Raises ValueError for anything else."""
        numbers = _varints(encoded)
        times = numbers[1::2]
        if len(numbers) % 2:
            raise ValueError("a bucket has no time")
        buckets = dict(zip(accumulate(numbers[::2]), times, strict=True))
        if len(buckets) < len(times):
            raise ValueError("a bucket is repeated")
        if buckets and max(buckets) >= MOST_BUCKETS:
            raise ValueError(f"bucket {max(buckets)} is out of range")
        return cls(least, buckets)

    def _bucket_of(self, value: float) -> int:
        if value < self.least:
            return 0
        bucket = int(math.log(value / self.least) / _LOG_GROWTH) + 1
        return min(bucket, MOST_BUCKETS - 1)

    def _upper_bound(self, bucket: int) -> float:
        return self.least * GROWTH**bucket if bucket else 0.0

    def _middle(self, bucket: int) -> float:
        return self.least * GROWTH ** (bucket - 0.5) if bucket else 0.0


def _write_varint(into: bytearray, number: int) -> None:
    while number >= _CONTINUES:
        into.append(number % _CONTINUES | _CONTINUES)
        number //= _CONTINUES
    into.append(number)


def _varints(encoded: bytes) -> Sequence[int]:
    if encoded.isascii():
        return encoded  # each byte is a number, as in most intervals of some minutes
    numbers = []
    number = shift = 0
    for byte in encoded:
        if byte < _CONTINUES:
            numbers.append(number | byte << shift)
            number = shift = 0
            continue
        number |= (byte - _CONTINUES) << shift
        shift += 7
        if shift > 63:  # noqa: PLR2004 - the width of a number
            raise ValueError("a number has more than 64 bits")
    if shift:
        raise ValueError("the last number is cut off")
    return numbers
