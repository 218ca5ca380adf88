# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A single-process run on the same batches, with which the distributed run is compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .digits import Digits
from .perceptron import Perceptron
from .schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class ReferenceRun:
    """Loss of every step (steps,) float64, and the accuracy on the held-out digits per epoch."""

    losses: NDArray[np.float64]
    accuracies: list[float]


def train_reference(schedule: Schedule, digits: Digits) -> ReferenceRun:
    """Train in this process on whole batches, without any network."""
    model = Perceptron(schedule.seed)
    losses: list[float] = []
    accuracies: list[float] = []
    num_images = len(digits.train_labels)
    last_step = schedule.steps_per_epoch(num_images) - 1
    for _, step, batch in schedule.batches(num_images):
        loss, gradient = model.gradient(digits.train_images[batch], digits.train_labels[batch])
        model.step(gradient, learning_rate=schedule.learning_rate, momentum=schedule.momentum)
        losses.append(loss)
        if step == last_step:
            accuracies.append(model.accuracy(digits.test_images, digits.test_labels))
    return ReferenceRun(losses=np.array(losses), accuracies=accuracies)
