# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""The built-in models: matrix factorisation, MLP, CNN and a recurrent network, two data sets each.

They are small, as the models of the papers are not: a training takes seconds. Each has 20,000 to
45,000 parameters, so that a hundredth of its contributions is more than one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Final, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam, Optimizer

from ....hostlib.torch.training_task import TrainingTask
from . import data_sets
from .data_sets import TensorSamples

_RANK: Final = 16
"""Of factorised matrices."""


@final
class RankBatches:
    """A rank's parts of the batches of an epoch; each epoch has another order, the same for all."""

    def __init__(self, samples: TensorSamples, batch: int, place: tuple[int, int, int]) -> None:
        """`batch`: samples of all ranks; `place`: seed, rank and number of ranks."""
        self._samples = samples
        seed, self._rank, num_ranks = place
        self._share = batch // num_ranks
        self._batch = self._share * num_ranks
        self._generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Draw an order, and return the parts of this rank."""
        inputs, targets = self._samples.inputs, self._samples.targets
        order = torch.randperm(len(inputs), generator=self._generator)
        first = self._rank * self._share
        for start in range(first, len(inputs) - self._batch + 1 + first, self._batch):
            part = order[start : start + self._share]
            yield inputs[part], targets[part]


@final
class Factorisation(nn.Module):
    """A matrix as the product of two thin ones, with a mean and a bias of each row and column."""

    def __init__(self, num_rows: int, num_columns: int) -> None:
        super().__init__()
        self.rows, self.columns = nn.Embedding(num_rows, _RANK), nn.Embedding(num_columns, _RANK)
        self.row_bias, self.column_bias = nn.Embedding(num_rows, 1), nn.Embedding(num_columns, 1)
        for each in (self.rows, self.columns):
            nn.init.normal_(each.weight, std=0.1)
        for each in (self.row_bias, self.column_bias):
            nn.init.zeros_(each.weight)
        self.mean = nn.Parameter(torch.zeros(1))

    def forward(self, places: Tensor) -> Tensor:
        """Return the values of cells, by row and column."""
        row, column = places[:, 0], places[:, 1]
        bias = (self.row_bias(row) + self.column_bias(column)).squeeze(1)
        return (self.rows(row) * self.columns(column)).sum(1) + bias + self.mean


@final
class Recurrent(nn.Module):
    """An embedding, an LSTM and a head: of its last state, or of every one."""

    def __init__(self, num_inputs: int, num_outputs: int, *, width: int, is_of_all: bool) -> None:
        super().__init__()
        self.symbols = nn.Embedding(num_inputs, 16)
        self.body = nn.LSTM(16, width, batch_first=True)
        self.head = nn.Linear(width, num_outputs)
        self._is_of_all = is_of_all

    def forward(self, numbers: Tensor) -> Tensor:
        """Return scores: samples x classes, or samples x classes x places."""
        states, _ = self.body(self.symbols(numbers))
        if self._is_of_all:
            return self.head(states).transpose(1, 2)
        return self.head(states[:, -1])


def _accuracy(samples: TensorSamples, model: nn.Module) -> float:
    found = model(samples.held_inputs).argmax(1)
    return (found == samples.held_targets).double().mean().item()


def _explained(samples: TensorSamples, model: nn.Module) -> float:
    """Return the share of the held-out values' variance that the model explains."""
    errors = model(samples.held_inputs) - samples.held_targets
    return 1 - (errors.square().mean() / samples.held_targets.var(correction=0)).item()


def _make(  # noqa: PLR0913 - bound by name below
    seed: int,
    rank: int,
    num_ranks: int,
    *,
    data: Callable[[], TensorSamples],
    make_model: Callable[[TensorSamples], nn.Module],
    make_optimizer: Callable[[nn.Module], Optimizer],
    batch: int,
    epochs: int,
    is_regression: bool = False,
) -> TrainingTask:
    samples = data()
    model = make_model(samples)
    metric = _explained if is_regression else _accuracy
    return TrainingTask(
        model=model,
        batches=RankBatches(samples, batch, (seed, rank, num_ranks)),
        loss=functional.mse_loss if is_regression else functional.cross_entropy,
        optimizer=make_optimizer(model),
        metric=functools.partial(metric, samples),
        epochs=epochs,
    )


def _adam(rate: float) -> Callable[[nn.Module], Optimizer]:
    return lambda model: Adam(model.parameters(), lr=rate)


def _factorisation(samples: TensorSamples) -> nn.Module:
    rows, columns = samples.inputs[:, 0], samples.inputs[:, 1]
    return Factorisation(int(rows.max()) + 1, int(columns.max()) + 1)


def _small_perceptron(_: TensorSamples) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(),
        nn.Linear(64, 10),
    )  # fmt: skip


def _text_perceptron(_: TensorSamples) -> nn.Module:
    return nn.Sequential(
        nn.Linear(data_sets.NUM_WORDS, 20), nn.ReLU(), nn.Linear(20, data_sets.NUM_CATEGORIES)
    )


def _small_cnn(_: TensorSamples) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def _large_cnn(_: TensorSamples) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(8, 16, 5, stride=2, padding=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(784, 40), nn.ReLU(), nn.Linear(40, 10),
    )  # fmt: skip


def _gloss_reader(_: TensorSamples) -> nn.Module:
    return Recurrent(data_sets.NUM_WORDS + 1, data_sets.NUM_CATEGORIES, width=32, is_of_all=False)


def _manual_reader(_: TensorSamples) -> nn.Module:
    characters = data_sets.num_characters()
    return Recurrent(characters, characters, width=64, is_of_all=True)


MODELS: Final[Mapping[str, Callable[[int, int, int], TrainingTask]]] = {
    "mf-digits": functools.partial(
        _make,
        data=data_sets.digit_pixels,
        make_model=_factorisation,
        make_optimizer=_adam(0.04),
        batch=8192,
        epochs=9,
        is_regression=True,
    ),
    "mf-wordnet": functools.partial(
        _make,
        data=data_sets.word_categories,
        make_model=_factorisation,
        make_optimizer=_adam(0.04),
        batch=8192,
        epochs=8,
        is_regression=True,
    ),
    "mlp-digits": functools.partial(
        _make,
        data=data_sets.small_digits,
        make_model=_small_perceptron,
        make_optimizer=_adam(0.005),
        batch=144,
        epochs=8,
    ),
    "mlp-wordnet": functools.partial(
        _make,
        data=data_sets.gloss_bags,
        make_model=_text_perceptron,
        make_optimizer=_adam(0.01),
        batch=640,
        epochs=8,
    ),
    "cnn-digits": functools.partial(
        _make,
        data=data_sets.small_digits,
        make_model=_small_cnn,
        make_optimizer=_adam(0.005),
        batch=144,
        epochs=8,
    ),
    "cnn-mnist": functools.partial(
        _make,
        data=data_sets.large_digits,
        make_model=_large_cnn,
        make_optimizer=_adam(0.005),
        batch=400,
        epochs=8,
    ),
    "rnn-wordnet": functools.partial(
        _make,
        data=data_sets.gloss_words,
        make_model=_gloss_reader,
        make_optimizer=_adam(0.02),
        batch=640,
        epochs=8,
    ),
    "rnn-manual": functools.partial(
        _make,
        data=data_sets.manual_passages,
        make_model=_manual_reader,
        make_optimizer=_adam(0.02),
        batch=200,
        epochs=8,
    ),
}
"""By name: the kind of model, and its data."""
