# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What workers do in each step: which keys they use, and what they push."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ....hostlib.parameter_server.rows import Adagrad, GradientSum
from ....hostlib.parameter_server.tables import TableDefinition
from ..workloads.bag_classifier import Bag
from ..workloads.glosses import NUM_CLASSES, Glosses
from ..workloads.key_stream import RECOMMENDATION, SEARCH, KeyStream
from ..workloads.sparse_text import SparseSamples
from .plan import TablePlan, TableWorkload

Keys = NDArray[np.int64]
NUM_HOTTEST: Final = 64
"""Keys of a pull of the hottest keys alone."""
_LEARNING_RATE: Final = 0.3
_MOST: Final = 8
"""Whole numbers are from minus this to this."""
_POPULARITIES: Final = {
    TableWorkload.ZIPF_845: RECOMMENDATION,
    TableWorkload.ZIPF_1070: SEARCH,
    TableWorkload.ZIPF_1500: replace(SEARCH, exponent=1.5),
}


@dataclass(frozen=True, eq=False)
class TableStep:
    """One mini-batch of a worker."""

    keys: Keys
    """Each once."""
    num_samples: int
    numbers: NDArray[np.int16]
    """What is pushed to the table of sums, with a row for each key."""
    bag: Bag | None
    """The mini-batch to train with; its keys are those of the step."""


def sums_table(plan: TablePlan) -> TableDefinition:
    """Define the table of whole numbers, whose sums are exact."""
    return plan.table("sums", 1 if plan.is_training else plan.width, GradientSum())


def plain_table(plan: TablePlan) -> TableDefinition:
    """Define the table that has sums of steps in its place in some blocks; no key is ever hot."""
    return replace(sums_table(plan), name="plain", hot_keys=0)


def weights_table(plan: TablePlan) -> TableDefinition:
    """Define the table of the classifier's weights."""
    return plan.table("weights", NUM_CLASSES, Adagrad(learning_rate=_LEARNING_RATE))


def steps_of(plan: TablePlan, worker_id: int) -> Iterator[TableStep]:
    """Yield steps of a worker without end; the same at each call.

    A training counts in its sums how often each key was used. Otherwise they are of random numbers.
    """
    if plan.is_training:
        for samples in _batches(plan, worker_id):
            bag = Bag(samples)
            uses = np.bincount(np.searchsorted(bag.keys, samples.keys), minlength=bag.keys.size)
            yield TableStep(bag.keys, len(samples), uses.astype(np.int16)[:, np.newaxis], bag)
        return
    rng = np.random.default_rng((plan.seed, worker_id, 1))
    for keys in _drawn_keys(plan, worker_id):
        numbers = rng.integers(-_MOST, _MOST, (keys.size, plan.width), np.int16, endpoint=True)
        yield TableStep(keys, plan.batch, numbers, None)


def epoch_steps(plan: TablePlan, num_samples: int, epochs: int) -> TablePlan:
    """Return the plan with as many steps as so many passes over the samples take."""
    return replace(plan, steps=epochs * max(1, num_samples // plan.num_workers // plan.batch))


def expected_sums(plan: TablePlan, num_steps: Sequence[int]) -> tuple[Keys, NDArray[np.int64]]:
    """Return all keys of a run, rising, and what the table of sums must hold in the end.

    `num_steps`: the steps that each worker took.
    """
    steps = [
        step
        for worker_id, number in enumerate(num_steps)
        for step in islice(steps_of(plan, worker_id), number)
    ]
    keys = np.unique(np.concatenate([step.keys for step in steps]))
    sums = np.zeros((keys.size, sums_table(plan).width), np.int64)
    for step in steps:
        sums[np.searchsorted(keys, step.keys)] += step.numbers
    return keys, sums


def with_pulled(
    expected: tuple[Keys, NDArray[np.int64]], pulled: Keys
) -> tuple[Keys, NDArray[np.int64]]:
    """Return expected sums with the rows that pulls have made, which hold zeros."""
    keys, sums = expected
    all_keys = np.union1d(keys, pulled)
    all_sums = np.zeros((all_keys.size, sums.shape[1]), np.int64)
    all_sums[np.searchsorted(all_keys, keys)] = sums
    return all_keys, all_sums


def hottest_keys(plan: TablePlan) -> Keys:
    """Return the keys that a run's workers use most; none of texts, where nobody knows them."""
    popularity = _POPULARITIES.get(plan.workload)
    if popularity is None:
        return np.empty(0, np.int64)
    return KeyStream(popularity, plan.seed).hottest(NUM_HOTTEST)


def write_samples(glosses: Glosses, path: Path) -> None:
    """Write the samples of the glosses for the processes of runs."""
    arrays = {
        f"{part}_{what}": getattr(getattr(glosses, part), what)
        for part in ("train", "held_out")
        for what in ("keys", "starts", "labels")
    }
    np.savez(path, **arrays)


def read_samples_file(path: str, part: Literal["train", "held_out"]) -> SparseSamples:
    """Read what `write_samples` wrote."""
    with np.load(path) as arrays:
        return SparseSamples(*(arrays[f"{part}_{what}"] for what in ("keys", "starts", "labels")))


def _drawn_keys(plan: TablePlan, worker_id: int) -> Iterator[Keys]:
    """Yield the different keys of each mini-batch of a worker."""
    if plan.workload is TableWorkload.GLOSSES:
        yield from (np.unique(samples.keys) for samples in _batches(plan, worker_id))
        return
    stream = KeyStream(_POPULARITIES[plan.workload], plan.seed, worker=worker_id)
    while True:
        yield np.unique(stream.draw(plan.batch))


def _batches(plan: TablePlan, worker_id: int) -> Iterator[SparseSamples]:
    """Yield mini-batches of a worker's share of the glosses, which is shuffled for each epoch."""
    samples = read_samples_file(plan.samples, "train")
    rng = np.random.default_rng((plan.seed, worker_id))
    share = np.arange(worker_id, len(samples), plan.num_workers)
    if share.size < plan.batch:
        raise ValueError(f"a worker has {share.size} samples, less than one batch of {plan.batch}")
    while True:
        order = rng.permutation(share)
        for first in range(0, share.size - plan.batch + 1, plan.batch):
            yield samples.take(order[first : first + plan.batch])
