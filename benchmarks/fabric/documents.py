# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A corpus for topic models: definitions of WordNet, of which each document has 40 neighbours.

WordNet orders the definitions of a category by subject, so that neighbours have topics in common.
Debian's package `wordnet-base` has them; nothing is downloaded.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from switchfold.controller.cli.workloads.errors import WorkloadDataError
from switchfold.controller.cli.workloads.glosses import FOLDER, read_glosses

GLOSSES_OF_DOCUMENT: Final = 40
NUM_WORDS: Final = 8192
"""Words of the vocabulary: the most frequent ones, without the stop words."""
NUM_STOP_WORDS: Final = 100
"""The most frequent words of all are in no topic."""
NUM_DOCUMENTS: Final = 640
NUM_HELD_OUT: Final = 40
_WORD: Final = re.compile(rb"[a-z]+")
_SPLIT_SEED: Final = 5

Words = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Documents:
    """Tokens of documents, one document after the other."""

    words: Words
    """Number of each token's word, from 0."""
    starts: Words
    """One more than there are documents, rising from 0: where the tokens of each begin."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def document_of_token(self) -> Words:
        """Number of the document that each token belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def take(self, chosen: Words) -> Documents:
        """Return these documents in this order."""
        sizes = np.diff(self.starts)[chosen]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        places = np.arange(int(starts[-1])) + np.repeat(self.starts[chosen] - starts[:-1], sizes)
        return Documents(self.words[places], starts)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Documents to train on, and some that are held out; the split is always the same."""

    train: Documents
    held_out: Documents

    def write(self, path: Path) -> None:
        """Write it for other processes."""
        np.savez(
            path,
            train_words=self.train.words,
            train_starts=self.train.starts,
            held_words=self.held_out.words,
            held_starts=self.held_out.starts,
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        with np.load(path) as found:
            return cls(
                train=Documents(found["train_words"], found["train_starts"]),
                held_out=Documents(found["held_words"], found["held_starts"]),
            )


def load_corpus(folder: Path = FOLDER, num_documents: int = NUM_DOCUMENTS) -> Corpus:
    """Read the definitions, and return documents of all subjects; takes about two seconds.

    Raises WorkloadDataError if the files are missing, not those of WordNet, or have too few words.
    """
    texts, categories = read_glosses(folder)
    found = [_WORD.findall(text.lower()) for text in texts]
    counts = Counter(word for words in found for word in words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    vocabulary = ranked[NUM_STOP_WORDS : NUM_STOP_WORDS + NUM_WORDS]
    number = {word: place for place, word in enumerate(vocabulary)}
    bounds = _document_bounds(categories)
    if len(vocabulary) < NUM_WORDS or len(bounds) < num_documents + NUM_HELD_OUT:
        raise WorkloadDataError(
            f"{folder} has {len(vocabulary)} words and {len(bounds)} documents, not"
            f" {NUM_WORDS} and {num_documents + NUM_HELD_OUT}; install wordnet-base again"
        )
    chosen: list[int] = np.random.default_rng(_SPLIT_SEED).permutation(len(bounds)).tolist()
    tokens: list[list[int]] = []
    for each in chosen[: num_documents + NUM_HELD_OUT]:
        first, end = bounds[each]
        inside = (word for words in found[first:end] for word in words)
        tokens.append([number[word] for word in inside if word in number])
    starts = np.cumsum([0, *(len(each) for each in tokens)])
    whole = Documents(np.array([word for each in tokens for word in each], np.int64), starts)
    every = np.arange(len(whole))
    return Corpus(train=whole.take(every[NUM_HELD_OUT:]), held_out=whole.take(every[:NUM_HELD_OUT]))


def _document_bounds(categories: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first definition of each document and the one after its last.

    A document has definitions of one category; what is left at a category's end is in none.
    """
    ends = [*(np.flatnonzero(np.diff(categories)) + 1).tolist(), len(categories)]
    size = GLOSSES_OF_DOCUMENT
    return [
        (first, first + size)
        for start, end in zip([0, *ends[:-1]], ends, strict=True)
        for first in range(start, end - size + 1, size)
    ]
