# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Multinomial logistic regression on bags of keys: a row of a sparse table is a key's weights."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from .sparse_text import SparseSamples

Rows = NDArray[np.float32]


@final
class Bag:
    """A mini-batch with the rows that it needs.

    The scores of a sample are the sum of the rows of its keys, one value for each class.
    """

    def __init__(self, samples: SparseSamples) -> None:
        self.keys, places = np.unique(samples.keys, return_inverse=True)
        """The keys of the mini-batch, each once, int64."""
        self._samples = samples
        self._places = places.reshape(-1)

    def probabilities(self, rows: Rows) -> Rows:
        """Return each sample's probability of each class, given the rows of `keys`."""
        scores = np.add.reduceat(rows[self._places], self._samples.starts[:-1])
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        return scores / scores.sum(axis=1, keepdims=True)

    def gradient(self, rows: Rows) -> tuple[float, Rows]:
        """Return the mean loss (cross-entropy), and its gradient by the rows, in their shape."""
        errors = self.probabilities(rows)
        labels = self._samples.labels
        samples = np.arange(len(labels))
        loss = -float(np.mean(np.log(np.maximum(errors[samples, labels], 1e-30, dtype=np.float64))))
        errors[samples, labels] -= 1
        errors /= np.float32(len(labels))
        by_key = np.argsort(self._places, kind="stable")
        firsts = np.searchsorted(self._places[by_key], np.arange(self.keys.size))
        return loss, np.add.reduceat(errors[self._samples.sample_of_key[by_key]], firsts)

    def num_right(self, rows: Rows) -> int:
        """Return how many samples have their own class as the most probable one."""
        found = self.probabilities(rows).argmax(axis=1)
        return int(np.count_nonzero(found == self._samples.labels))
