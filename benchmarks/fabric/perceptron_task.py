# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's perceptron on handwritten digits: an update is a step against a batch's gradient."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from switchfold.controller.cli.demo.digits import Digits
from switchfold.controller.cli.demo.perceptron import NUM_PARAMETERS, Perceptron

BATCH: Final = 64

Floats = NDArray[np.float32]


def write_digits(digits: Digits, path: Path) -> None:
    """Write digits for other processes."""
    np.savez(path, **{field.name: getattr(digits, field.name) for field in fields(Digits)})


def read_digits(path: Path) -> Digits:
    """Read what `write_digits` wrote."""
    with np.load(path) as found:
        return Digits(**{field.name: found[field.name] for field in fields(Digits)})


@final
class PerceptronTask:
    """A worker's part of the digits."""

    num_values: Final = NUM_PARAMETERS

    def __init__(
        self, digits: Digits, worker: int, num_workers: int, seed: int, learning_rate: float
    ) -> None:
        self._images = digits.train_images[worker::num_workers]
        self._labels = digits.train_labels[worker::num_workers]
        self._held_images, self._held_labels = digits.test_images, digits.test_labels
        self._key = seed, worker
        self._rate = np.float32(learning_rate)
        self._net = Perceptron(seed)
        self._start = self._net.parameters.copy()

    def start(self) -> Floats:
        """Return the first parameters, the same ones for all workers of a seed."""
        return self._start

    def update(self, model: Floats, iteration: int) -> Floats:
        """Return the step for a batch, which worker, iteration and seed draw."""
        chance = np.random.default_rng((*self._key, iteration))
        chosen = chance.integers(len(self._labels), size=BATCH)
        self._net.parameters[:] = model
        _, gradient = self._net.gradient(self._images[chosen], self._labels[chosen])
        gradient *= -self._rate
        return gradient

    def settle(self, *, is_applied: bool) -> None:
        """Learn what became of the last update: nothing here depends on it."""

    def score(self, model: Floats) -> float:
        """Return the share of held-out digits that are recognised."""
        self._net.parameters[:] = model
        return self._net.accuracy(self._held_images, self._held_labels)
