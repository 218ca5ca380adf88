# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A convex problem that is trained along a timeline, with each gradient as late as it was there.

Least squares: 64 weights, 4,096 samples, curvatures from 1 to 5. A worker computes a gradient
from 128 samples of its own with the weights that it got; a server applies it at the commit
with a fixed learning rate. No formula stands for the convergence: weights are really stepped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.timeline import TimelineEvent, TimelineKind

NUM_WEIGHTS = 64
NUM_SAMPLES = 4096
BATCH = 128
MOST_CURVATURE = 5.0
TARGET = 0.05
"""Share of the loss above the optimum at the start; a run has converged when it falls below."""
LEARNING_RATES = tuple(0.32 / 2**step for step in range(7))
"""Tried for each contender; the best one counts."""
_DIVERGED = 1e3


@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    """The problem: minimise the mean of (x w - y)^2 / 2 over all samples."""

    samples: NDArray[np.float64]
    """Samples times weights, float64."""
    targets: NDArray[np.float64]
    optimum: NDArray[np.float64]
    curvature: NDArray[np.float64]
    """Matrix of second derivatives."""

    @classmethod
    def draw(cls, seed: int) -> LeastSquares:
        """Return a problem by a seed."""
        chance = np.random.default_rng(seed)
        scales = np.sqrt(np.geomspace(1.0, MOST_CURVATURE, NUM_WEIGHTS))
        samples = chance.normal(size=(NUM_SAMPLES, NUM_WEIGHTS)) * scales
        truth = chance.normal(size=NUM_WEIGHTS)
        targets = samples @ truth + chance.normal(size=NUM_SAMPLES)
        curvature = samples.T @ samples / NUM_SAMPLES
        optimum = np.linalg.solve(curvature, samples.T @ targets / NUM_SAMPLES).astype(np.float64)
        return cls(samples=samples, targets=targets, optimum=optimum, curvature=curvature)

    def excess(self, weights: NDArray[np.float64]) -> float:
        """Return the loss above the optimum's."""
        away = weights - self.optimum
        return float(away @ self.curvature @ away) / 2

    def gradient(
        self, weights: NDArray[np.float64], chance: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return the gradient (float64) of a drawn mini-batch."""
        rows = chance.integers(NUM_SAMPLES, size=BATCH)
        part = self.samples[rows]
        return part.T @ (part @ weights - self.targets[rows]) / BATCH


def time_to_target(
    problem: LeastSquares,
    events: Sequence[TimelineEvent],
    learning_rate: float,
    *,
    seed: int,
    divisor: int = 1,
) -> float | None:
    """Return when training along a timeline reaches `TARGET`, None if it does not.

    `divisor` is the number of updates that one step averages: all workers of a synchronous step,
    else 1. A worker draws the same mini-batches in the same iterations under every contender.
    """
    servers = sorted({event.server for event in events})
    parts = dict(zip(servers, np.array_split(np.arange(NUM_WEIGHTS), len(servers)), strict=True))
    weights = np.zeros(NUM_WEIGHTS)
    held: dict[str, NDArray[np.float64]] = {}
    gradients: dict[str, NDArray[np.float64]] = {}
    iterations: dict[str, int] = {}
    numbers: dict[str, int] = {}
    """Of workers, in the order of their first models: the same one for all contenders."""
    wanted = TARGET * problem.excess(weights)
    most = _DIVERGED * problem.excess(weights)
    for event in events:
        worker, part = event.worker, parts[event.server]
        if event.event is TimelineKind.GET:
            numbers.setdefault(worker, len(numbers))
            held.setdefault(worker, weights.copy())[part] = weights[part]
        elif event.event is TimelineKind.PUSH and event.server == servers[0]:
            iteration = iterations.get(worker, 0)
            iterations[worker] = iteration + 1
            chance = np.random.default_rng((seed, numbers[worker], iteration))
            gradients[worker] = problem.gradient(held[worker], chance)
        elif event.event is TimelineKind.COMMIT:
            weights[part] -= learning_rate / divisor * gradients[worker][part]
            excess = problem.excess(weights)
            if excess <= wanted:
                return event.time_s
            if not excess < most:
                return None
    return None


def best_time_to_target(
    problem: LeastSquares, events: Sequence[TimelineEvent], *, seed: int, divisor: int = 1
) -> tuple[float | None, float | None]:
    """Return the least time over `LEARNING_RATES`, and its rate; None if none converges."""
    found = [
        (time_s, rate)
        for rate in LEARNING_RATES
        if (time_s := time_to_target(problem, events, rate, seed=seed, divisor=divisor)) is not None
    ]
    return min(found, default=(None, None), key=lambda each: (each[0], each[1]))
