# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The trainings: a perceptron on handwritten digits, and a topic model of WordNet."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.fabric.documents import Corpus, load_corpus
from benchmarks.fabric.perceptron_task import PerceptronTask, read_digits, write_digits
from benchmarks.fabric.topic_task import TopicTask
from switchfold.controller.cli.demo.digits import load_digits

Floats = NDArray[np.float32]
read_corpus_once: Final = functools.cache(Corpus.read)
read_digits_once: Final = functools.cache(read_digits)


class FabricTask(Protocol):
    """What one worker trains on; models and updates are flat float32 arrays of one size."""

    def start(self) -> Floats:
        """Return the first model, the same one for all workers."""
        ...

    def update(self, model: Floats, iteration: int) -> Floats:
        """Return what a server is to add to its model."""
        ...

    def settle(self, *, is_applied: bool) -> None:
        """Learn what became of the last update."""
        ...

    def score(self, model: Floats) -> float:
        """Return how good a model is on data that is held out."""
        ...


@dataclass(frozen=True, kw_only=True)
class FabricWorkload:
    """A training, and when it has converged."""

    name: str
    title: str
    measure: str
    """What a score is."""
    is_high_good: bool
    target: float
    """A model with this score, or a better one, is good enough."""
    num_values: int
    has_rate: bool
    """Whether updates have a learning rate; and a step of a ring is then their mean."""

    def reaches(self, score: float, target: float) -> bool:
        """Return whether a score is good enough."""
        return score >= target if self.is_high_good else score <= target


WORKLOADS: Final = {
    each.name: each
    for each in (
        FabricWorkload(
            name="perceptron",
            title="perceptron on handwritten digits",
            measure="accuracy",
            is_high_good=True,
            target=0.82,
            num_values=PerceptronTask.num_values,
            has_rate=True,
        ),
        FabricWorkload(
            name="topics",
            title="topic model of WordNet's definitions",
            measure="perplexity",
            is_high_good=False,
            target=3000.0,
            num_values=TopicTask.num_values,
            has_rate=False,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """What workers train, alike on all of them."""

    workload: str
    num_workers: int
    seed: int
    learning_rate: float
    data: str
    """File that `write_data` has written."""

    def make(self, worker: int) -> FabricTask:
        """Return a worker's part."""
        path = Path(self.data)
        if self.workload == "perceptron":
            digits = read_digits_once(path)
            return PerceptronTask(digits, worker, self.num_workers, self.seed, self.learning_rate)
        return TopicTask(read_corpus_once(path), worker, self.num_workers, self.seed)


def write_data(workload: str, path: Path) -> None:
    """Write what a workload trains on, so that each process reads it in little time.

    Raises DemoError or WorkloadDataError if the package is missing that has it.
    """
    if workload == "perceptron":
        write_digits(load_digits(), path)
    else:
        load_corpus().write(path)
