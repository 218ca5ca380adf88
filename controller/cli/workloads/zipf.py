# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Zipf's law over a bounded number of ranks, and a bijection between ranks and keys."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.int64]
"""Ranks from 0, the hottest."""
_SUMMED_RANKS: Final = 1 << 20
"""The weights of so many ranks are added one by one; those of the rest are integrated."""


@final
class ZipfRanks:
    """Draws ranks 0 to n - 1; rank r has a weight of (r + 1) ** -exponent.

    Rejection-inversion (Hörmann and Derflinger, 1996): the inverse of the weight's integral maps a
    uniform number to a real x, and the nearest integer k is taken. An integer would come too often
    where the integral from k - 1/2 to k + 1/2 is above the weight of k, so the surplus at the left
    end of each interval is rejected. There is no table, so n may be any number.
    """

    def __init__(self, num_ranks: int, exponent: float) -> None:
        if num_ranks < 1 or not 0 < exponent < 10:
            raise ValueError(
                f"{num_ranks} ranks with exponent {exponent}; give 1 or more, between 0 and 10"
            )
        self.num_ranks = num_ranks
        self.exponent = exponent
        # The integral over the first interval is cut on the left to the weight of its integer, 1.
        self._low = float(self._integral(np.float64(1.5))) - 1
        self._high = float(self._integral(np.float64(num_ranks + 0.5)))
        # How far x may lie left of k without any test: least for k = 2, whose weight is the most
        # curved one that has a surplus.
        edge = self._integral(np.float64(2.5)) - 2.0**-exponent
        self._always = 2 - float(self._inverse(edge))

    def draw(self, generator: np.random.Generator, count: int) -> Ranks:
        """Return `count` independent ranks."""
        ranks = np.empty(count, np.int64)
        done = 0
        while done < count:
            found = self._accepted(generator.random(count - done))
            ranks[done : done + len(found)] = found
            done += len(found)
        return ranks

    def share(self, top: int) -> float:
        """Return the probability of the `top` hottest ranks together."""
        if not 0 <= top <= self.num_ranks:
            raise ValueError(f"the top {top} of {self.num_ranks} ranks")
        return self._weight(top) / self._weight(self.num_ranks)

    def probability(self, ranks: Ranks) -> NDArray[np.float64]:
        """Return the probability of each rank."""
        weights: NDArray[np.float64] = np.power(ranks + 1.0, -self.exponent)
        return weights / self._weight(self.num_ranks)

    def _accepted(self, uniform: NDArray[np.float64]) -> Ranks:
        area = self._high + uniform * (self._low - self._high)
        x = self._inverse(area)
        nearest = np.clip(np.rint(x), 1, self.num_ranks)
        accepted = nearest - x <= self._always
        doubtful = np.flatnonzero(~accepted)
        k = nearest[doubtful]
        accepted[doubtful] = area[doubtful] >= self._integral(k + 0.5) - k**-self.exponent
        return nearest[accepted].astype(np.int64) - 1

    def _integral(self, x: NDArray[np.float64] | np.float64) -> NDArray[np.float64] | np.float64:
        """Return the integral of the weight from 1 to x."""
        power = 1 - self.exponent
        if power == 0:
            return np.log(x)
        return np.expm1(power * np.log(x)) / power

    def _inverse(self, area: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
        power = 1 - self.exponent
        if power == 0:
            return np.exp(area)
        return np.exp(np.log1p(area * power) / power)

    def _weight(self, count: int) -> float:
        """Return the sum of the first `count` weights (Euler and Maclaurin's formula)."""
        summed = min(count, _SUMMED_RANKS)
        total = float(np.sum(np.arange(1, summed + 1, dtype=np.float64) ** -self.exponent))
        if count > summed:
            first, last = np.float64(summed), np.float64(count)
            total += float(self._integral(last) - self._integral(first))
            total += float(last**-self.exponent - first**-self.exponent) / 2
        return total


@final
class KeyScramble:
    """A bijection of 0 to n - 1, chosen by a seed: which key has which rank.

    Odd factors and shifts permute the numbers below a power of two. A result of n or more is
    permuted again until it is below n, which is fewer than two turns on average.
    """

    _ROUNDS: Final = 3

    def __init__(self, num_keys: int, seed: int) -> None:
        if not 1 <= num_keys <= 1 << 62:
            raise ValueError(f"{num_keys} keys; give 1 to 2**62")
        self.num_keys = num_keys
        bits = max(2, (num_keys - 1).bit_length())
        self._mask = np.uint64((1 << bits) - 1)
        self._shift = np.uint64((bits + 1) // 2)
        drawn = np.random.default_rng(seed).integers(0, 1 << 62, (self._ROUNDS, 2), np.uint64)
        factors = [int(factor) | 1 for factor in drawn[:, 0]]
        self._factors = [np.uint64(factor & int(self._mask)) for factor in factors]
        self._inverses = [np.uint64(pow(factor, -1, 1 << bits)) for factor in factors]
        self._offsets: list[np.uint64] = [offset & self._mask for offset in drawn[:, 1]]

    def keys(self, ranks: Ranks) -> NDArray[np.int64]:
        """Return the keys (int64) of ranks."""
        return self._walk(ranks, inverse=False)

    def ranks(self, keys: NDArray[np.int64]) -> Ranks:
        """Return the ranks of keys."""
        return self._walk(keys, inverse=True)

    def _walk(self, numbers: NDArray[np.int64], *, inverse: bool) -> NDArray[np.int64]:
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.num_keys:
            raise ValueError(f"numbers outside 0 to {self.num_keys - 1}")
        turn = self._unpermuted if inverse else self._permuted
        result = turn(numbers.astype(np.uint64).ravel())
        outside = np.flatnonzero(result >= self.num_keys)
        while outside.size:
            result[outside] = turn(result[outside])
            outside = outside[result[outside] >= self.num_keys]
        return result.astype(np.int64).reshape(numbers.shape)

    def _permuted(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        for factor, offset in zip(self._factors, self._offsets, strict=True):
            numbers = (numbers * factor + offset) & self._mask
            numbers ^= numbers >> self._shift
        return numbers

    def _unpermuted(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        for factor, offset in zip(self._inverses[::-1], self._offsets[::-1], strict=True):
            # The shift is half of the bits or more, so it undoes itself.
            numbers = numbers ^ (numbers >> self._shift)
            numbers = ((numbers - offset) * factor) & self._mask
        return numbers
