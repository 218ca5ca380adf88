# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Mini-batches of keys with skewed popularity, as sparse models read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from .zipf import KeyScramble, ZipfRanks

Keys = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class KeyPopularity:
    """How often the keys of a model are used, and which are used together."""

    num_keys: int
    exponent: float
    """Exponent of Zipf's law."""
    num_fields: int = 1
    """Each sample takes one key of every field. A field has an equal part of the keys."""
    num_topics: int = 1
    """Each sample has a topic, all with the same probability."""
    affinity: float = 0.0
    """Probability with which a sample takes the keys of its topic. Else it takes any keys.

    Every `num_topics` consecutive ranks of a field hold one key of each topic. So the topics hardly
    change how popular keys are, but the keys of a topic come together.
    """

    def __post_init__(self) -> None:
        if self.num_fields < 1 or self.num_keys < self.num_fields:
            raise ValueError(f"{self.num_keys} keys in {self.num_fields} fields")
        if self.num_topics < 1 or not 0 <= self.affinity <= 1:
            raise ValueError(f"{self.num_topics} topics with an affinity of {self.affinity}")


RECOMMENDATION: Final = KeyPopularity(num_keys=900_000, exponent=0.845)
"""Pan et al. (IMC'20): the hottest 20,000 of 0.9 M parameters take 50 % of all updates."""
SEARCH: Final = KeyPopularity(num_keys=150_000_000, exponent=1.070)
"""Pan et al. (IMC'20): the hottest 20,000 of 150 M parameters take 70 % of all updates."""


@final
class KeyStream:
    """Draws samples; the same popularity, seed and worker give the same stream.

    Streams of one seed have the same popular keys. Workers draw independently of each other.

    A field's rank r is rank r * num_fields + f of all keys, and a bijection gives each rank its
    key. Without topics, the ranks of a field are independent of each other.
    """

    def __init__(self, popularity: KeyPopularity, seed: int, *, worker: int | None = None) -> None:
        self.popularity = popularity
        self._generator = np.random.default_rng(seed if worker is None else (seed, worker))
        self._ranks = ZipfRanks(popularity.num_keys // popularity.num_fields, popularity.exponent)
        self._scramble = KeyScramble(popularity.num_keys, seed)

    def draw(self, num_samples: int) -> Keys:
        """Return the keys of a mini-batch, int64 of shape (num_samples, num_fields)."""
        num_fields = self.popularity.num_fields
        ranks = self._ranks.draw(self._generator, num_samples * num_fields)
        ranks = ranks.reshape(num_samples, num_fields)
        if self.popularity.affinity > 0:
            self._take_keys_of_topics(ranks)
        ranks = ranks * num_fields + np.arange(num_fields)
        return self._scramble.keys(ranks)

    def permute(self, seed: int) -> None:
        """Give every rank another key from now on: what was popular is not any more."""
        self._scramble = KeyScramble(self.popularity.num_keys, seed)

    def hottest(self, count: int) -> Keys:
        """Return the most popular keys, the hottest first."""
        return self._scramble.keys(np.arange(count, dtype=np.int64))

    def share(self, keys: Keys) -> float:
        """Return the share of all updates that these keys take together; without topics only."""
        if self.popularity.affinity > 0:
            raise ValueError("the share of keys with topics is not known")
        num_fields = self.popularity.num_fields
        ranks = self._scramble.ranks(keys) // num_fields
        return float(np.sum(self._ranks.probability(ranks))) / num_fields

    def _take_keys_of_topics(self, ranks: Keys) -> None:
        """Replace ranks in place by those of the samples' topics in the same group of ranks."""
        popularity = self.popularity
        num_samples = len(ranks)
        topics = self._generator.integers(0, popularity.num_topics, (num_samples, 1))
        of_topic = ranks - ranks % popularity.num_topics + topics
        takes = self._generator.random((num_samples, 1)) < popularity.affinity
        np.copyto(ranks, of_topic, where=takes & (of_topic < self._ranks.num_ranks))
