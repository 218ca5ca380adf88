# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A real text workload: to which category of the dictionary WordNet a definition belongs.

WordNet 3.0 (Princeton University, free for any purpose) is in Debian's package `wordnet-base`. Its
files have not changed since 2006, and give each of 117,659 definitions to one of 45 categories,
such as plants, feelings, or verbs of motion. The 16 largest have 93,123 definitions of a dozen
words on average. They have half a million different words and pairs of words; a few are in most of
the definitions, and most are in one or two.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .errors import WorkloadDataError
from .sparse_text import SparseSamples, read_samples

FOLDER: Final = Path("/usr/share/wordnet")
"""Where the Debian package has its files."""
NUM_CLASSES: Final = 16
_FILES: Final = ("data.noun", "data.verb", "data.adj", "data.adv")
_CATEGORY: Final = slice(9, 11)
"""Columns of a line with the number of its category, see wndb(5WN)."""
_LICENCE: Final = b"  "
"""Lines of the licence begin with it."""
_GLOSS: Final = b" | "
_SPLIT_SEED: Final = 5
_HELD_OUT: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Glosses:
    """Definitions to train on, and a tenth of all that is held out; the split is always the same.

    Classes are the categories with most definitions, the largest first.
    """

    train: SparseSamples
    held_out: SparseSamples


def load_glosses(folder: Path = FOLDER, *, num_classes: int = NUM_CLASSES) -> Glosses:
    """Read the definitions; takes about two seconds.

    Raises:
        WorkloadDataError: the files are missing, or are not those of WordNet.
    """
    texts, categories = read_glosses(folder)
    numbers, sizes = np.unique(categories, return_counts=True)
    largest = numbers[np.argsort(-sizes, kind="stable")][:num_classes]
    class_of_number = np.full(int(numbers[-1]) + 1, -1)
    class_of_number[largest] = np.arange(largest.size)
    labels = class_of_number[categories]
    chosen = np.flatnonzero(labels >= 0)
    samples = read_samples([texts[number] for number in chosen], labels[chosen])
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(samples))
    num_held_out = round(_HELD_OUT * len(samples))
    return Glosses(
        train=samples.take(order[num_held_out:]), held_out=samples.take(order[:num_held_out])
    )


def read_glosses(folder: Path) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the text and the number of the category of each definition; WorkloadDataError."""
    texts: list[bytes] = []
    categories: list[int] = []
    for path in (folder / name for name in _FILES):
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError as exc:
            raise WorkloadDataError(
                f"{path} is missing; it comes with WordNet: apt-get install wordnet-base"
            ) from exc
        for number, line in enumerate(lines, 1):
            if line.startswith(_LICENCE):
                continue
            _, mark, gloss = line.partition(_GLOSS)
            category = line[_CATEGORY]
            if not mark or not category.isdigit():
                raise WorkloadDataError(
                    f"line {number} of {path} is not one of WordNet 3.0; install wordnet-base again"
                )
            texts.append(gloss)
            categories.append(int(category))
    return texts, np.array(categories, np.int64)
