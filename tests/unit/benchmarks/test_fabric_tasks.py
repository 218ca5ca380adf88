# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trainings of the scheduler's benchmark: they learn, and their updates are what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.fabric import topic_task
from benchmarks.fabric.documents import (
    GLOSSES_OF_DOCUMENT,
    NUM_WORDS,
    Corpus,
    Documents,
    _document_bounds,
    load_corpus,
)
from benchmarks.fabric.perceptron_task import PerceptronTask, read_digits, write_digits
from benchmarks.fabric.topic_task import NUM_TOPICS, TopicTask
from switchfold.controller.cli.demo.digits import load_digits
from switchfold.controller.cli.workloads.errors import WorkloadDataError
from switchfold.controller.cli.workloads.glosses import FOLDER

WORKERS = 3


def made_corpus() -> Corpus:
    """Return documents of two subjects, each with a tenth of the words of its own."""
    chance = np.random.default_rng(1)
    sizes = chance.integers(60, 90, 40)
    subjects = np.repeat(np.arange(sizes.size) % 2, sizes)
    words = chance.integers(NUM_WORDS // 10, size=subjects.size) + subjects * (NUM_WORDS // 2)
    whole = Documents(words, np.concatenate(([0], np.cumsum(sizes))))
    every = np.arange(len(whole))
    return Corpus(train=whole.take(every[8:]), held_out=whole.take(every[:8]))


def test_documents_are_taken_in_any_order() -> None:
    documents = Documents(np.array([5, 6, 7, 8, 9, 4]), np.array([0, 2, 2, 6]))
    assert documents.document_of_token.tolist() == [0, 0, 2, 2, 2, 2]
    taken = documents.take(np.array([2, 0]))
    assert (taken.words.tolist(), taken.starts.tolist()) == ([7, 8, 9, 4, 5, 6], [0, 4, 6])


def test_documents_have_neighbours_of_one_category() -> None:
    size = GLOSSES_OF_DOCUMENT
    categories = np.repeat([4, 5, 4], [2 * size + 3, size - 1, size])
    assert _document_bounds(categories) == [
        (0, size),
        (size, 2 * size),
        (3 * size + 2, 4 * size + 2),
    ]


def test_corpus_is_the_same_in_another_process(tmp_path: Path) -> None:
    corpus = made_corpus()
    corpus.write(tmp_path / "corpus.npz")
    read = Corpus.read(tmp_path / "corpus.npz")
    for one, other in ((corpus.train, read.train), (corpus.held_out, read.held_out)):
        assert one.words.tolist() == other.words.tolist()
        assert one.starts.tolist() == other.starts.tolist()


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadDataError, match="apt-get install wordnet-base"):
        load_corpus(tmp_path)


@pytest.mark.skipif(not (FOLDER / "data.noun").exists(), reason="wordnet-base is not installed")
def test_corpus_of_wordnet_has_documents_of_many_words() -> None:
    corpus = load_corpus()
    assert (len(corpus.train), len(corpus.held_out)) == (640, 40)
    assert len(corpus.train.words) > 100 * len(corpus.train)
    assert corpus.train.words.max() < NUM_WORDS
    assert len(np.unique(corpus.train.words)) > NUM_WORDS // 2


def test_counts_of_all_workers_are_the_model() -> None:
    tasks = [TopicTask(made_corpus(), worker, WORKERS, 1) for worker in range(WORKERS)]
    model = tasks[0].start().copy()
    assert all((task.start() == model).all() for task in tasks)
    assert (model == sum(task.own_counts() for task in tasks)).all()
    first = tasks[0].score(model)
    models = [model]
    for step in range(20 * WORKERS):
        task = tasks[step % WORKERS]
        # As late as with a server: workers do not see what others push meanwhile.
        update = task.update(models[max(0, len(models) - WORKERS)], step // WORKERS)
        assert update.sum() == 0, "tokens only change their topics"
        task.settle(is_applied=True)
        models.append(models[-1] + update)
    assert (models[-1] == sum(task.own_counts() for task in tasks)).all()
    assert tasks[0].score(models[-1]) < 0.75 * first


def test_dropped_update_changes_no_topics() -> None:
    task = TopicTask(made_corpus(), 0, WORKERS, 1)
    before = task.own_counts()
    update = task.update(task.start(), 0)
    task.settle(is_applied=False)
    assert (task.own_counts() == before).all()
    assert (task.update(task.start(), 0) == update).all(), "the iteration draws the same again"
    task.settle(is_applied=True)
    assert (task.own_counts() == before + update).all()


def share_that_stays(words: NDArray[np.int64], starts: NDArray[np.int64]) -> float:
    """Return which share of tokens stays in the one topic in which all are."""
    train = Documents(words, starts)
    task = TopicTask(Corpus(train=train, held_out=train), 0, 1, 1)
    task.topics = np.zeros(words.size, np.int64)
    model = np.zeros((NUM_WORDS, NUM_TOPICS), np.float32)
    np.add.at(model[:, 0], words, 1)
    task.update(model.reshape(-1), 0)
    task.settle(is_applied=True)
    return float((task.topics == 0).mean())


def test_topics_are_drawn_by_the_other_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_task, "PASSES", 1)
    every = np.arange(400)
    # All tokens of the word, and of the document, are in the topic.
    assert share_that_stays(0 * every, np.array([0, 400])) > 0.95
    # Each document has one token, of a word that no other has: nothing speaks for its topic.
    assert share_that_stays(every, np.arange(401)) < 0.03


def test_perceptrons_update_is_a_step_against_the_gradient(tmp_path: Path) -> None:
    digits = load_digits()
    write_digits(digits, tmp_path / "digits.npz")
    digits = read_digits(tmp_path / "digits.npz")
    task, faster = (PerceptronTask(digits, 0, WORKERS, 1, rate) for rate in (0.05, 0.1))
    start = task.start()
    update = task.update(start, 0)
    assert np.allclose(2 * update, faster.update(start, 0))
    assert (update != task.update(start, 1)).any(), "each iteration draws its batch"
    other = PerceptronTask(digits, 1, WORKERS, 1, 0.05)
    assert (other.start() == start).all()
    assert (other.update(start, 0) != update).any()
    model = start
    for iteration in range(60):
        model = model + task.update(model, iteration)
    assert task.score(model) > max(0.6, task.score(start) + 0.3)
