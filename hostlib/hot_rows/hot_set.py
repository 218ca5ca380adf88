# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot set: the keys that take most updates, chosen from sketches, and refreshed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from ..errors import ConfigurationError
from .sketch import DEFAULT_CAPACITY, Counts, FrequencySketch, Keys

_DEVIATIONS: Final = 3.0
"""Standard deviations between an estimated coverage and its bounds."""


@dataclass(frozen=True, kw_only=True)
class HotSetOptions:
    """How many keys are hot, and how a refresh chooses them."""

    size: int
    """Most keys in the hot set."""
    sketch_capacity: int = DEFAULT_CAPACITY
    """Counters of all sketches; 8 times the size or more."""
    decay: float = 0.25
    """What a count is multiplied by at each refresh, before the new counts are added."""
    memory: float = 256.0
    """Counts decay less where fewer updates than so many for each key of the set would be left."""
    margin: float = 1.25
    """How many times as hot a key must be as the one that it replaces."""
    deviations: float = 2.0
    """By how many standard deviations of their difference it must be hotter as well."""
    shift: float = 0.05
    """How far the coverage must fall until older counts are dropped."""
    keys_per_sample: int = 1
    """Keys that come together, such as the fields of a training sample. They count as one
    observation for the bounds of the coverage."""

    def __post_init__(self) -> None:
        if self.size < 1 or self.sketch_capacity < self.size:
            raise ConfigurationError(
                f"{self.size} hot keys from sketches of {self.sketch_capacity} counters; give at"
                " least one key, and no fewer counters than keys"
            )
        if not (0 <= self.decay <= 1 and self.memory >= 0):
            raise ConfigurationError(
                f"decay {self.decay}, memory {self.memory}; give 0 to 1, 0 or more"
            )
        if not (self.margin >= 1 and self.deviations >= 0):
            raise ConfigurationError(
                f"margin {self.margin}, deviations {self.deviations}; give 1 or more, 0 or more"
            )
        if self.keys_per_sample < 1 or not 0 <= self.shift <= 1:
            raise ConfigurationError(
                f"{self.keys_per_sample} keys per sample, shift {self.shift}; give 1 or more,"
                " 0 to 1"
            )


@dataclass(frozen=True)
class Coverage:
    """The share of all updates that a hot set takes, estimated from the sample."""

    estimate: float
    low: float
    """3 standard deviations of the sampling below the estimate."""
    high: float
    """3 standard deviations above what the sample could show, with the sketch's error."""


@dataclass(frozen=True, eq=False)
class HotSet:
    """Keys in the order of their heat, the hottest first."""

    keys: Keys
    counts: Counts
    """Sampled updates of each key, decayed."""
    coverage: Coverage


@dataclass(frozen=True, eq=False)
class HotSetChange:
    """What a refresh did. The arrays of keys rise."""

    kept: Keys
    added: Keys
    removed: Keys
    is_shift: bool
    """Whether popularity has moved, so that only the newest counts decided."""
    hot_set: HotSet
    """The hot set from now on: what was kept and added."""


@final
class HotSetTracker:
    """Adds up the workers' sketches, and chooses a hot set at each refresh.

    A key in the set keeps its place unless another is clearly hotter. The hottest key outside the
    set is compared with the coldest in it, the second hottest with the second coldest, and so on. A
    key with x updates replaces one with y if both hold, with e as the sketch's error and w as the
    weight of an update (1 without decay):

        x + e > margin * (y + e)    and    x - y > deviations * sqrt(w * (x + y))

    The second condition keeps few updates from deciding: 3 are not clearly more than 1.

    Older counts decay from refresh to refresh, unless updates are few. If the upper bound of the
    set's share of the new updates is below the lower bound of its former coverage by more than
    `shift`, popularity has moved. Then older counts are dropped, and the set is the hottest keys of
    the new ones.
    """

    def __init__(self, options: HotSetOptions) -> None:
        self._options = options
        self._sketch = FrequencySketch(options.sketch_capacity)
        self._keys: Keys = np.empty(0, np.int64)
        self._coverage = Coverage(0.0, 0.0, 1.0)

    def counts(self, keys: Keys) -> Counts:
        """Return the updates of keys that were counted, decayed."""
        return self._sketch.counts(keys)

    def refresh(self, sketches: Iterable[FrequencySketch]) -> HotSetChange:
        """Choose the hot set, with what the workers have counted since the last refresh.

        Raises HotRowError for a sketch of another capacity.
        """
        new = FrequencySketch(self._options.sketch_capacity)
        for sketch in sketches:
            new.merge(sketch)
        is_shift = self._is_shift(new)
        self._sketch.decay(0.0 if is_shift else self._decay(new.total))
        self._sketch.merge(new)
        old = self._keys
        chosen = np.sort(self._choose(old[:0] if is_shift else old))
        counts = self._sketch.counts(chosen)
        order = np.lexsort((chosen, -counts))
        self._keys = chosen
        self._coverage = self._estimate(counts)
        return HotSetChange(
            kept=np.intersect1d(old, chosen, assume_unique=True),
            added=np.setdiff1d(chosen, old, assume_unique=True),
            removed=np.setdiff1d(old, chosen, assume_unique=True),
            is_shift=is_shift,
            hot_set=HotSet(chosen[order], counts[order], self._coverage),
        )

    def _decay(self, new_updates: float) -> float:
        """Return what older counts are multiplied by, before so many updates are added."""
        options, total = self._options, self._sketch.total
        missing = options.memory * options.size - new_updates
        return min(1.0, max(options.decay, missing / total)) if total else options.decay

    def _is_shift(self, new: FrequencySketch) -> bool:
        if not new.total:
            return False
        most = min(1.0, float(np.sum(new.counts(self._keys) + new.error)) / new.total)
        return most + self._spread(most, new.total) < self._coverage.low - self._options.shift

    def _spread(self, share: float, updates: float) -> float:
        """Return 3 standard deviations of a share that was found in so many sampled updates."""
        samples = updates / self._options.keys_per_sample
        return _DEVIATIONS * math.sqrt(max(share * (1 - share), 1 / samples) / samples)

    def _choose(self, old: Keys) -> Keys:
        """Return the new hot set, given the one to start from."""
        options, sketch = self._options, self._sketch
        old_counts = sketch.counts(old)
        coldest_first = np.lexsort((-old, old_counts))
        # So many are enough: at worst, every key of the set is replaced.
        top, top_counts = sketch.top(2 * options.size)
        is_outside = ~np.isin(top, old, assume_unique=True)
        outside, outside_counts = top[is_outside], top_counts[is_outside]
        free = options.size - old.size
        filled = outside[:free]
        challengers, x = outside[free:], outside_counts[free:]
        y = old_counts[coldest_first]
        pairs = min(x.size, y.size)
        x, y = x[:pairs], y[:pairs]
        gap = options.deviations * np.sqrt(self._update_weight * (x + y))
        is_clear = (x + sketch.error > options.margin * (y + sketch.error)) & (x - y > gap)
        # x falls and y rises, so the first pair that is not clear ends the search.
        replaced = pairs if is_clear.all() else int(np.argmin(is_clear))
        stay = old[coldest_first[replaced:]]
        return np.concatenate((stay, filled, challengers[:replaced]))

    @property
    def _update_weight(self) -> float:
        """Mean weight of an update, weighted by itself."""
        return self._sketch.squares / self._sketch.total if self._sketch.total else 1.0

    def _estimate(self, counts: Counts) -> Coverage:
        sketch = self._sketch
        if not sketch.total:
            return Coverage(0.0, 0.0, 1.0)
        seen = float(counts.sum()) / sketch.total
        unseen = sketch.error * counts.size / sketch.total
        lucky = self._lucky_updates(counts) / sketch.total
        estimate = min(1.0, max(0.0, seen - lucky + unseen))
        spread = self._spread(estimate, sketch.total / self._update_weight)
        return Coverage(
            estimate,
            low=max(0.0, seen - lucky - spread),
            high=min(1.0, seen + unseen + spread),
        )

    def _lucky_updates(self, counts: Counts) -> float:
        """Return the updates without each of which its key would not be in the set.

        A set that is chosen by a sample takes more of this sample than of other updates. Leaving
        each update out in turn corrects that: it counts only if its key is chosen without it.
        """
        _, all_counts = self._sketch.top(self._sketch.capacity)
        if all_counts.size <= self._options.size:
            return 0.0
        limit = all_counts[self._options.size]
        rest = counts - self._update_weight
        is_tied = np.isclose(rest, limit, rtol=1e-9)
        lucky = counts[(counts >= limit) & (rest < limit) & ~is_tied].sum()
        # Among keys with equal counts, chance decides which are in the set.
        inside = float(np.sum(counts == limit))
        outside = float(np.sum(all_counts == limit)) - inside
        return float(lucky + counts[is_tied].sum() * outside / (inside + outside + 1))
