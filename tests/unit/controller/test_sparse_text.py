# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Texts as keys of a sparse model, WordNet's definitions, and the classifier of bags of keys."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from switchfold.controller.cli.workloads.bag_classifier import Bag
from switchfold.controller.cli.workloads.errors import WorkloadDataError
from switchfold.controller.cli.workloads.glosses import FOLDER, NUM_CLASSES, load_glosses
from switchfold.controller.cli.workloads.sparse_text import (
    BIAS_KEY,
    SparseSamples,
    read_samples,
)

needs_wordnet = pytest.mark.skipif(
    not (FOLDER / "data.noun").is_file(), reason="no WordNet here: apt-get install wordnet-base"
)
LICENCE = "  1 This software and database is being provided to you\n"
FILES = ("data.noun", "data.verb", "data.adj", "data.adv")


def samples_of(*texts: str) -> SparseSamples:
    return read_samples([text.encode() for text in texts], np.arange(len(texts)))


def keys_of(samples: SparseSamples, number: int) -> list[int]:
    return samples.keys[samples.starts[number] : samples.starts[number + 1]].tolist()


def words_of(text: str) -> list[int]:
    """Return the keys of a text's words: those that it has in a text of its own."""
    return [keys_of(samples_of(word), 0)[1] for word in text.split()]


def line(category: int, gloss: str) -> str:
    return f"00001740 {category:02} n 01 entity 0 001 ~ 00001930 n 0000 | {gloss}  \n"


def write_wordnet(folder: Path, lines: list[str]) -> None:
    """Write a dictionary with these lines, spread over its four files."""
    for number, name in enumerate(FILES):
        text = LICENCE + "".join(lines[number::4])
        (folder / name).write_text(text, encoding="utf-8")


def test_a_sample_has_its_words_its_pairs_and_the_bias() -> None:
    samples = samples_of("a red car", "Red: a CAR!", "", "car", "a-red a")
    red, car, a = words_of("red car a")
    assert len({red, car, a, BIAS_KEY}) == 4
    assert keys_of(samples, 0)[:4] == [BIAS_KEY, a, red, car]
    assert keys_of(samples, 1)[:4] == [BIAS_KEY, red, a, car]
    assert keys_of(samples, 2) == [BIAS_KEY]
    assert keys_of(samples, 3) == [BIAS_KEY, car]
    # The pairs "a red" and "red car"; "red a" and "a car"; "a red" and "red a".
    pairs = [keys_of(samples, number)[4:] for number in (0, 1, 4)]
    assert [len(found) for found in pairs] == [2, 2, 2]
    assert pairs[2] == [pairs[0][0], pairs[1][0]]
    assert len({key for found in pairs for key in found}) == 4


def test_keys_are_the_same_on_all_machines() -> None:
    assert samples_of("a red").keys.tolist() == [
        BIAS_KEY,
        7247738914666652423 >> 1,
        4639509054565944032 >> 1,
        5728411425796394373 >> 1,
    ]


def test_words_are_told_apart_as_by_a_regular_expression() -> None:
    rng = np.random.default_rng(3)
    alphabet = np.array(list("abz09 .-'AZé"))
    texts = ["".join(rng.choice(alphabet, rng.integers(0, 30))) for _ in range(200)]
    samples = samples_of(*texts)
    known: dict[str, int] = {}
    for number, text in enumerate(texts):
        words = re.findall("[a-z0-9é]+", text.lower())
        keys = keys_of(samples, number)
        assert len(keys) == 1 + len(words) + max(0, len(words) - 1)
        for word, key in zip(words, keys[1:], strict=False):
            assert known.setdefault(word, key) == key
    assert len(set(known.values())) == len(known) > 300


def test_taken_samples_are_those_asked_for() -> None:
    samples = samples_of("a", "b c d", "", "e f")
    taken = samples.take(np.array([3, 1, 3]))
    assert taken.labels.tolist() == [3, 1, 3]
    assert [keys_of(taken, i) for i in range(3)] == [keys_of(samples, i) for i in (3, 1, 3)]
    assert taken.sample_of_key.tolist() == [0] * 4 + [1] * 6 + [2] * 4
    assert len(samples.take(np.empty(0, np.int64))) == 0


def test_a_text_of_two_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="several lines"):
        samples_of("a\nb")


def test_the_largest_categories_become_classes(tmp_path: Path) -> None:
    kinds = [(20, "plant", 300), (5, "animal", 200), (3, "thing", 100)]
    lines = [line(number, f"a {word} {i}") for number, word, count in kinds for i in range(count)]
    write_wordnet(tmp_path, lines)
    glosses = load_glosses(tmp_path, num_classes=2)
    assert (len(glosses.train), len(glosses.held_out)) == (450, 50)
    plant, animal, thing = words_of("plant animal thing")
    for samples in (glosses.train, glosses.held_out):
        assert thing not in samples.keys
        labels = samples.labels[samples.sample_of_key]
        assert set(labels[samples.keys == plant]) == {0}
        assert set(labels[samples.keys == animal]) == {1}
    counts = np.bincount(np.concatenate((glosses.train.labels, glosses.held_out.labels)))
    assert counts.tolist() == [300, 200]


def test_a_missing_dictionary_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(WorkloadDataError, match="apt-get install wordnet-base"):
        load_glosses(tmp_path)


@pytest.mark.parametrize("bad", ["00001740 03 n 01 entity\n", line(3, "x").replace("03", "x3", 1)])
def test_a_damaged_dictionary_names_the_line(tmp_path: Path, bad: str) -> None:
    write_wordnet(tmp_path, [line(3, "a whole thing")] * 4 + [bad])
    with pytest.raises(WorkloadDataError, match=r"line 3 of .*data\.noun"):
        load_glosses(tmp_path)


def test_gradient_is_that_of_the_loss() -> None:
    samples = read_samples([b"a b a", b"b", b"c a"], np.array([0, 2, 1]))
    bag = Bag(samples)
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 1, (bag.keys.size, 3)).astype(np.float32)
    _, gradient = bag.gradient(rows)
    step = 1e-2
    for place in np.ndindex(*rows.shape):
        losses: list[float] = []
        for sign in (-1, 1):
            moved = rows.copy()
            moved[place] += sign * step
            losses.append(bag.gradient(moved)[0])
        assert gradient[place] == pytest.approx((losses[1] - losses[0]) / (2 * step), abs=1e-4)


def test_classifier_learns_what_words_mean() -> None:
    samples = samples_of(*["dog cat", "oak elm", "cat", "elm"])
    samples = SparseSamples(samples.keys, samples.starts, np.array([0, 1, 0, 1]))
    bag = Bag(samples)
    rows = np.zeros((bag.keys.size, 2), np.float32)
    first, gradient = bag.gradient(rows)
    assert first == pytest.approx(np.log(2))
    for _ in range(20):
        rows -= gradient
        loss, gradient = bag.gradient(rows)
    assert loss < first / 4
    assert bag.num_right(rows) == 4


@needs_wordnet
def test_wordnet_is_high_dimensional_and_skewed() -> None:
    glosses = load_glosses()
    assert (len(glosses.train), len(glosses.held_out)) == (83_811, 9_312)
    assert glosses.train.labels.max() == NUM_CLASSES - 1
    counts = np.sort(np.unique(glosses.train.keys, return_counts=True)[1])[::-1]
    assert counts.size == 431_095
    assert glosses.train.keys.min() == BIAS_KEY
    assert counts[:1024].sum() / counts.sum() == pytest.approx(0.42, abs=0.01)
    assert counts[:20_000].sum() / counts.sum() == pytest.approx(0.68, abs=0.01)
