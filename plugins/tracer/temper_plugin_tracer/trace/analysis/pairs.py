"""Sums of nanoseconds by pairs of a row and a party, in bounded memory."""

import numpy as np

from temper_plugin_tracer.trace.analysis.parties import PartyKind, party_code
from temper_plugin_tracer.trace.analysis.threads import Integers

__all__ = ["CODE_BITS", "PairSums", "summed"]

CODE_BITS = 36
"""Bits of a party's code in a key. A row has the bits above them."""
MOST_PAIRS = 1 << 20
OTHERS = party_code(PartyKind.OTHERS)


def summed(keys: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Return the distinct keys in order, and the sum of the values of each. Zeros are left out."""
    keys, places = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, places, values)
    return keys[sums > 0], sums[sums > 0]


class PairSums:
    """Nanoseconds of each pair. Small pairs are folded into their row's others beyond *most*."""

    def __init__(self, most: int = MOST_PAIRS) -> None:
        self._most = most
        self._keys: Integers = np.zeros(0, np.int64)
        self._sums: Integers = np.zeros(0, np.int64)
        self._pending: list[tuple[Integers, Integers]] = []
        self._pending_count = 0
        self.folded = 0
        """Pairs that were folded."""

    def add(self, keys: Integers, sums: Integers) -> None:
        """Add sums of keys, which are a row above ``CODE_BITS`` bits of a party's code."""
        self._pending.append((keys, sums))
        self._pending_count += len(keys)
        if self._pending_count > self._most // 4:
            self._settle()

    def all(self) -> tuple[Integers, Integers]:
        """Return the keys in order, and their sums."""
        self._settle()
        return self._keys, self._sums

    def _settle(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._pending)])
        sums = np.concatenate([self._sums, *(sums for _, sums in self._pending)])
        self._pending, self._pending_count = [], 0
        self._keys, self._sums = summed(keys, sums)
        if len(self._keys) > self._most:
            self._fold()

    def _fold(self) -> None:
        small = np.argsort(self._sums, kind="stable")[: len(self._sums) - self._most // 2]
        self.folded += len(small)
        keys = self._keys.copy()
        keys[small] = (keys[small] >> CODE_BITS << CODE_BITS) | OTHERS
        self._keys, self._sums = summed(keys, self._sums)
