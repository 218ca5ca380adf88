# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Seeded traces of link rates and computing times: every contender of a run sees the same ones.

A value depends on the seed, the host and the period or iteration alone, never on the order in which
contenders ask. The settings are ours: those of MLfabric's evaluation are not public.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LINKS, _COMPUTING, _SLOW_HOSTS, _SLOW_WORKERS, _WEIGHTS, _STARTS = range(6)
_SHARES = (1.0, 0.5, 0.25)


class LinkSetting(enum.Enum):
    """How the rates of hosts' links change."""

    EVEN = "even"
    """All links keep their nominal rate."""
    REDRAWN = "redrawn"
    """Each host's rate is drawn again every 5 s: 100, 50 or 25 % of its nominal one."""
    HALVED = "tenth-halved"
    """A tenth of the workers, at least one, have half of the nominal rate for the whole run."""


class ComputeSetting(enum.Enum):
    """How long workers compute."""

    EVEN = "even"
    """All workers take the nominal time, but for 5 % of noise, as in all settings."""
    STRAGGLERS = "stragglers"
    """A fifth of the workers are 4 times slower; who, is drawn again every 10 iterations."""
    FEW_SLOW = "few-slow"
    """A tenth of the workers are 2 times slower for the whole run."""


def _chance(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


@dataclass(frozen=True, kw_only=True)
class LinkTrace:
    """Shares of the nominal rates, by host and time."""

    setting: LinkSetting
    seed: int
    hosts: Sequence[str]
    """All hosts: workers, servers, and those that add."""
    workers: Sequence[str]
    period_s: float = 5.0

    @property
    def changes(self) -> bool:
        """Whether rates change during a run."""
        return self.setting is LinkSetting.REDRAWN

    def shares(self, period: int) -> dict[str, float]:
        """Return by host the share of its nominal rate in a period (from 0)."""
        shares = dict.fromkeys(self.hosts, 1.0)
        if self.setting is LinkSetting.REDRAWN:
            drawn = _chance(self.seed, _LINKS, period).choice(_SHARES, len(self.hosts))
            return dict(zip(self.hosts, drawn.tolist(), strict=True))
        if self.setting is LinkSetting.HALVED:
            order = _chance(self.seed, _SLOW_HOSTS).permutation(len(self.workers))
            for number in order[: max(1, len(self.workers) // 10)]:
                shares[self.workers[int(number)]] = 0.5
        return shares


class ComputeTrace:
    """Computing times, by worker (number from 0) and iteration (from 0)."""

    def __init__(
        self, setting: ComputeSetting, seed: int, num_workers: int, nominal_s: float
    ) -> None:
        self.setting = setting
        self._seed = seed
        self._num_workers = num_workers
        self._nominal_s = nominal_s
        self._block = functools.lru_cache(maxsize=64)(self._draw_block)

    def time_s(self, worker: int, iteration: int) -> float:
        """Return the seconds that a worker computes in an iteration."""
        block, within = divmod(iteration, 10)
        return float(self._block(block)[within, worker])

    def _draw_block(self, block: int) -> NDArray[np.float64]:
        """Return the times (float64) of 10 iterations by worker."""
        noise = _chance(self._seed, _COMPUTING, block).uniform(0.95, 1.05, (10, self._num_workers))
        times = self._nominal_s * noise
        if self.setting is ComputeSetting.STRAGGLERS:
            slow = _chance(self._seed, _SLOW_WORKERS, block).permutation(self._num_workers)
            times[:, slow[: max(1, self._num_workers // 5)]] *= 4
        elif self.setting is ComputeSetting.FEW_SLOW:
            slow = _chance(self._seed, _SLOW_WORKERS).permutation(self._num_workers)
            times[:, slow[: max(1, self._num_workers // 10)]] *= 2
        return times


@dataclass(frozen=True, kw_only=True)
class RecordedComputing:
    """Computing times of a recorded run; workers stop after their last one."""

    times_s: Sequence[Sequence[float]]
    """By worker and iteration."""

    def time_s(self, worker: int, iteration: int) -> float | None:
        """Return the seconds that a worker computed, None if it had ended."""
        own = self.times_s[worker]
        return own[iteration] if iteration < len(own) else None


class StreamWeights:
    """How unequally TCP streams of many senders share a link: the drops hit some more than others.

    A stream's weight is lognormal, and drawn for each worker and iteration. With a spread of 0 all
    are equal. Streams of one sender leave its one queue in turn, so they have no weights.
    """

    def __init__(self, spread: float, seed: int, num_workers: int) -> None:
        self._spread = spread
        self._seed = seed
        self._num_workers = num_workers
        self._of_iteration = functools.lru_cache(maxsize=256)(self._draw)

    def weight(self, worker: int, iteration: int) -> float:
        """Return the weight of a worker's update (both numbers from 0)."""
        return float(self._of_iteration(iteration)[worker])

    def _draw(self, iteration: int) -> NDArray[np.float64]:
        chance = _chance(self._seed, _WEIGHTS, iteration)
        return np.exp(self._spread * chance.normal(size=self._num_workers))


def drawn_starts(spread_s: float, seed: int, num_workers: int) -> tuple[float, ...]:
    """Return when each worker begins: moments in 0 .. `spread_s`, in seconds."""
    drawn = _chance(seed, _STARTS).uniform(0.0, 1.0, num_workers)
    return tuple(float(spread_s * each) for each in drawn)
