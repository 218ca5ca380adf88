# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A multilayer perceptron with one hidden layer, its parameters in one flat array."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from .digits import NUM_CLASSES, NUM_PIXELS

NUM_HIDDEN: Final = 128
_SHAPES: Final = (
    (NUM_PIXELS, NUM_HIDDEN),
    (NUM_HIDDEN,),
    (NUM_HIDDEN, NUM_CLASSES),
    (NUM_CLASSES,),
)
NUM_PARAMETERS: Final = sum(int(np.prod(shape)) for shape in _SHAPES)


class Perceptron:
    """784 inputs, 128 rectified hidden units, 10 classes; float32; trained by cross-entropy."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.parameters = np.zeros(NUM_PARAMETERS, np.float32)
        self._velocity = np.zeros(NUM_PARAMETERS, np.float32)
        self._hidden_weights, self._hidden_bias, self._weights, self._bias = _split(self.parameters)
        for weights in (self._hidden_weights, self._weights):
            scale = np.sqrt(2 / weights.shape[0])
            weights[:] = generator.normal(0, scale, weights.shape)

    def gradient(
        self, images: NDArray[np.float32], labels: NDArray[np.int64]
    ) -> tuple[float, NDArray[np.float32]]:
        """Return the mean loss of a batch and its gradient (NUM_PARAMETERS,) float32."""
        hidden = np.maximum(images @ self._hidden_weights + self._hidden_bias, 0)
        shares = _softmax(hidden @ self._weights + self._bias)
        rows = np.arange(len(labels))
        loss = -float(np.mean(np.log(shares[rows, labels], dtype=np.float64)))
        gradient = np.empty(NUM_PARAMETERS, np.float32)
        to_hidden_weights, to_hidden_bias, to_weights, to_bias = _split(gradient)
        error = shares
        error[rows, labels] -= 1
        error /= len(labels)
        np.matmul(hidden.T, error, out=to_weights)
        np.sum(error, axis=0, out=to_bias)
        hidden_error = (error @ self._weights.T) * (hidden > 0)
        np.matmul(images.T, hidden_error, out=to_hidden_weights)
        np.sum(hidden_error, axis=0, out=to_hidden_bias)
        return loss, gradient

    def step(self, gradient: NDArray[np.float32], *, learning_rate: float, momentum: float) -> None:
        """Move the parameters against the gradient (stochastic gradient descent with momentum)."""
        self._velocity *= np.float32(momentum)
        self._velocity += gradient
        self.parameters -= np.float32(learning_rate) * self._velocity

    def accuracy(self, images: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
        """Return the share of images whose class is right."""
        hidden = np.maximum(images @ self._hidden_weights + self._hidden_bias, 0)
        classes = np.argmax(hidden @ self._weights + self._bias, axis=1)
        return int(np.count_nonzero(classes == labels)) / len(labels)


def _split(flat: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    views: list[NDArray[np.float32]] = []
    start = 0
    for shape in _SHAPES:
        size = int(np.prod(shape))
        views.append(flat[start : start + size].reshape(shape))
        start += size
    return views


def _softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    scores = scores - scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return np.maximum(scores, np.float32(1e-30))
