# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Texts as samples of a sparse model: each word, and each pair of neighbours, is a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
_Hashes = NDArray[np.uint64]
BIAS_KEY: Final = 0
"""A key of every sample, for what does not depend on the text."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number near 2^64 divided by the golden ratio."""
_MIXERS: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
"""Shifts and factors of the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
_LAST_SHIFT: Final = np.uint64(31)
_NEW_LINE: Final = ord("\n")


@dataclass(frozen=True, eq=False)
class SparseSamples:
    """Samples of a classifier; sample i has the keys `keys[starts[i]:starts[i + 1]]`."""

    keys: Keys
    """Keys of all samples, one after the other; a key may repeat in a sample."""
    starts: NDArray[np.int64]
    """One more than there are samples, rising from 0; no sample is empty."""
    labels: NDArray[np.int64]
    """Class of each sample, from 0."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def sample_of_key(self) -> NDArray[np.int64]:
        """The number of the sample that each key belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def take(self, samples: NDArray[np.int64]) -> SparseSamples:
        """Return these samples in this order."""
        sizes = np.diff(self.starts)[samples]
        starts = _starts(sizes)
        places = np.arange(int(starts[-1])) + np.repeat(self.starts[samples] - starts[:-1], sizes)
        return SparseSamples(self.keys[places], starts, self.labels[samples])


def read_samples(texts: Sequence[bytes], labels: NDArray[np.int64]) -> SparseSamples:
    """Return one sample for each text: its words, pairs of neighbouring words, and BIAS_KEY.

    A word is a sequence of letters and digits of ASCII, and of bytes of other characters; case does
    not matter. Keys are hashes from 0 to 2^63 - 1, the same on all machines; two words share a key
    with a probability of 2^-63.
    """
    if any(b"\n" in text for text in texts):
        raise ValueError("a text has several lines; give one line for each sample")
    characters = np.frombuffer(b"\n".join([*texts, b""]).lower(), np.uint8)
    words, of_word = _words(characters)
    pairs = _mixed(words[:-1] * _FACTOR + words[1:])
    is_pair = of_word[:-1] == of_word[1:]
    biases = np.full(len(texts), BIAS_KEY, np.int64)
    hashes = np.concatenate((words, pairs[is_pair])) >> np.uint64(1)
    keys = np.concatenate((biases, hashes.view(np.int64)))
    samples = np.concatenate((np.arange(len(texts)), of_word, of_word[:-1][is_pair]))
    counts = np.bincount(samples, minlength=len(texts))
    return SparseSamples(
        keys[np.argsort(samples, kind="stable")],
        _starts(counts),
        labels,
    )


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _words(characters: NDArray[np.uint8]) -> tuple[_Hashes, NDArray[np.int64]]:
    """Return the hash of each word, and the number of its line."""
    is_in_word = _IS_IN_WORD[characters]
    edges = np.diff(is_in_word.view(np.int8), prepend=0)
    firsts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not firsts.size:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    lengths = ends - firsts
    powers = np.cumprod(np.full(int(lengths.max()), _FACTOR), dtype=np.uint64)
    begins = np.cumsum(lengths) - lengths
    in_word = np.arange(int(lengths.sum())) - np.repeat(begins, lengths)
    terms = characters[is_in_word].astype(np.uint64) * powers[in_word]
    lines = np.cumsum(characters == _NEW_LINE)[firsts]
    return _mixed(np.add.reduceat(terms, begins)), lines


def _mixed(numbers: _Hashes) -> _Hashes:
    """Return a hash of each number, by a bijection that changes about half of the bits."""
    for shift, factor in _MIXERS:
        numbers = (numbers ^ (numbers >> shift)) * factor
    return numbers ^ (numbers >> _LAST_SHIFT)


def _word_characters() -> NDArray[np.bool_]:
    codes = np.arange(256)
    is_letter = (codes >= ord("a")) & (codes <= ord("z"))
    is_digit = (codes >= ord("0")) & (codes <= ord("9"))
    return is_letter | is_digit | (codes >= 0x80)


_IS_IN_WORD: Final = _word_characters()
