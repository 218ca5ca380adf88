# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A topic model (LDA) by collapsed Gibbs sampling: the model is counts, an update is their change.

The parameter server has, for each word and topic, the number of tokens of the word that are in the
topic (PLDA's scheme: Wang et al., 2009). A worker keeps the topics of its own documents' tokens. In
an iteration it draws all of them again by the counts that it got, in passes; within a pass, tokens
do not see each other's new topics. The counts are whole numbers, so float32 adds them exactly.
"""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from benchmarks.fabric.documents import NUM_WORDS, Corpus, Documents, Words

NUM_TOPICS: Final = 64
ALPHA: Final = 0.1
"""Of the prior of a document's topics."""
BETA: Final = 0.05
"""Of the prior of a topic's words."""
PASSES: Final = 2
"""Draws of each token's topic in an iteration."""
_FOLDS: Final = 8
"""Steps in which the topics of a held-out document are found."""

Floats = NDArray[np.float32]


@final
class TopicTask:
    """A worker's part of the documents, and the topics of their tokens."""

    num_values: Final = NUM_WORDS * NUM_TOPICS

    def __init__(self, corpus: Corpus, worker: int, num_workers: int, seed: int) -> None:
        """All workers draw the same first topics of all tokens, each for its documents."""
        self._seed, self._worker = seed, worker
        every = np.arange(len(corpus.train))
        first = np.random.default_rng((seed, 0)).integers(NUM_TOPICS, size=len(corpus.train.words))
        self._start = _counts(corpus.train.words, first)
        mine = corpus.train.take(every[worker::num_workers])
        is_mine = corpus.train.document_of_token % num_workers == worker
        self._words, self._documents = mine.words, mine.document_of_token
        self._num_documents = len(mine)
        self.topics = first[is_mine]
        self._drawn = self.topics
        self._held_out = _Halves(corpus.held_out)

    def start(self) -> Floats:
        """Return the counts of the first topics of all documents' tokens."""
        return self._start

    def update(self, model: Floats, iteration: int) -> Floats:
        """Draw topics by these counts; return the change of the counts."""
        chance = np.random.default_rng((self._seed, 1, self._worker, iteration))
        counts = model.reshape(NUM_WORDS, NUM_TOPICS)
        rows = counts[self._words]
        old = self.topics
        tokens = np.arange(old.size)
        rows[tokens, old] -= 1  # a token does not see itself
        totals = np.broadcast_to(counts.sum(0), rows.shape).copy()
        totals[tokens, old] -= 1
        by_word = (rows + np.float32(BETA)) / (totals + np.float32(BETA * NUM_WORDS))
        self._drawn = old
        for _ in range(PASSES):
            in_document = _counts_of(self._documents, self._drawn, self._num_documents)
            shares = in_document[self._documents]
            shares[tokens, self._drawn] -= 1
            shares += np.float32(ALPHA)
            shares *= by_word
            sums = np.cumsum(shares, axis=1)
            wanted = chance.random(old.size, np.float32) * sums[:, -1]
            self._drawn = np.minimum((sums < wanted[:, None]).sum(1), NUM_TOPICS - 1)
        return _counts(self._words, self._drawn) - _counts(self._words, old)

    def settle(self, *, is_applied: bool) -> None:
        """Learn what became of the last update: the drawn topics hold, or the old ones."""
        if is_applied:
            self.topics = self._drawn

    def own_counts(self) -> Floats:
        """Return the counts of this worker's tokens; those of all workers are the model."""
        return _counts(self._words, self.topics)

    def score(self, model: Floats) -> float:
        """Return the perplexity of the second halves of held-out documents, given the first."""
        return self._held_out.perplexity(model.reshape(NUM_WORDS, NUM_TOPICS))


class _Halves:
    """Held-out documents: topics are found from every other token, and judged by the rest."""

    def __init__(self, documents: Documents) -> None:
        is_seen = np.arange(len(documents.words)) % 2 == 0
        of = documents.document_of_token
        self._count = len(documents)
        self._seen = documents.words[is_seen], of[is_seen]
        self._hidden = documents.words[~is_seen], of[~is_seen]

    def perplexity(self, counts: Floats) -> float:
        by_topic = (counts + BETA) / (counts.sum(0) + BETA * NUM_WORDS)
        words, documents = self._seen
        rows = by_topic[words]
        shares = np.full((self._count, NUM_TOPICS), 1 / NUM_TOPICS)
        for _ in range(_FOLDS):
            parts = shares[documents] * rows
            parts /= parts.sum(1, keepdims=True)
            shares = np.full_like(shares, ALPHA)
            for topic in range(NUM_TOPICS):
                shares[:, topic] += np.bincount(documents, parts[:, topic], self._count)
            shares /= shares.sum(1, keepdims=True)
        words, documents = self._hidden
        likely = (shares[documents] * by_topic[words]).sum(1)
        return float(np.exp(-np.log(likely).mean()))


def _counts(words: Words, topics: Words) -> Floats:
    return _counts_of(words, topics, NUM_WORDS).reshape(-1)


def _counts_of(rows: Words, topics: Words, num_rows: int) -> Floats:
    found = np.bincount(rows * NUM_TOPICS + topics, minlength=num_rows * NUM_TOPICS)
    return found.astype(np.float32).reshape(num_rows, NUM_TOPICS)
