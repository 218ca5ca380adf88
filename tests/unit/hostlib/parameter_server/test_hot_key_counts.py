# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What workers count for servers that choose hot keys."""

from __future__ import annotations

import numpy as np
import pytest

from hot_world import World
from switchfold.hostlib.hot_rows import FrequencySketch, KeyBatches
from switchfold.hostlib.parameter_server.hot_worker.key_counts import KeyCounts
from switchfold.hostlib.parameter_server.hot_worker.key_samples import SAMPLE_S
from switchfold.hostlib.parameter_server.hot_worker.sample_budget import (
    MOST_BYTES,
    SHARE,
    SampleBudget,
)


def test_each_key_of_a_push_counts_once_and_negative_ones_never() -> None:
    counts = KeyCounts(1024, 1.0, seed=1)
    assert counts.take() is None
    counts.count(np.array([5, -2, 9, 5, -1]))
    counts.count(np.array([5, 0]))
    packed = counts.take()
    assert packed is not None
    sketch = FrequencySketch.unpack(packed)
    assert sketch.counts(np.array([5, 9, 0, 7])).tolist() == [2, 1, 1, 0]
    assert sketch.total == 4
    assert counts.take() is None


def test_negative_keys_alone_are_nothing() -> None:
    counts = KeyCounts(1024, 1.0, seed=1)
    counts.count(np.array([-5]))
    assert counts.take() is None


def test_a_share_of_the_pushes_is_counted() -> None:
    counts = KeyCounts(1024, 0.1, seed=1)
    for _ in range(1000):
        counts.count(np.array([3]))
    packed = counts.take()
    assert packed is not None
    assert 70 < FrequencySketch.unpack(packed).total < 130


def test_a_sample_leaves_out_what_it_may() -> None:
    counts = KeyCounts(1024, 1.0, seed=1)
    counts.count(np.array([3]), may_skip=True)
    assert counts.take() is None


def test_samples_are_a_share_of_the_pushes() -> None:
    budget = SampleBudget()
    assert budget.allows_counts
    assert budget.allows_batches
    budget.spend(MOST_BYTES // 2)
    assert budget.allows_counts
    assert not budget.allows_batches
    budget.earn(round(4 / SHARE))
    assert budget.allows_batches
    budget.spend(MOST_BYTES)
    assert not budget.allows_counts
    budget.earn(round((MOST_BYTES // 2 - 8) / SHARE))
    assert not budget.allows_counts
    budget.earn(round(8 / SHARE))
    assert budget.allows_counts
    budget.earn(1 << 60)
    budget.spend(MOST_BYTES)
    assert not budget.allows_counts


def test_a_worker_sends_no_more_samples_than_pushes_pay_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, 1)
    worker = world.workers[0]
    worker.rows.count_keys(world.table, 1 << 20)
    world.server.set_rows([1], generation=3)
    world.server.install()
    world.settle()
    rng = np.random.default_rng(1)
    pushed = 0
    for _ in range(40):
        keys = rng.integers(1 << 40, 1 << 62, 4000)
        gradients = world.gradients(np.ones((keys.size, world.width)))
        worker.push(keys.tolist(), gradients)
        pushed += keys.nbytes + gradients.nbytes
        world.loop.pass_by(SAMPLE_S)
    sent = sum(map(len, worker.sketches + worker.batches))
    most = max(map(len, worker.sketches + worker.batches))
    assert MOST_BYTES < sent < MOST_BYTES + SHARE * pushed + 2 * most
    assert sum(map(len, worker.batches)) < MOST_BYTES // 2 + SHARE * pushed + most
    last = FrequencySketch.unpack(worker.sketches[-1])
    assert last.total > 0


def test_a_sketch_a_second_goes_to_a_server_of_hot_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, 1)
    worker = world.workers[0]
    worker.rows.count_keys(world.table, 1024)
    gradients = world.gradients(np.ones((2, world.width)))
    worker.push([1, 2], gradients)  # to a server that has not spoken of hot rows
    world.loop.pass_by(SAMPLE_S)
    assert not worker.sketches
    world.server.set_rows([1], generation=3)
    world.server.install()
    world.settle()
    for _ in range(3):
        worker.push([1, 2], gradients)
    assert not worker.sketches
    world.loop.pass_by(SAMPLE_S)
    assert [FrequencySketch.unpack(each).total for each in worker.sketches] == [6]
    (packed,) = worker.batches
    assert [batch.tolist() for batch in KeyBatches.unpack(packed).batches] == [[1, 2]] * 3
    world.loop.pass_by(5 * SAMPLE_S)
    assert len(worker.sketches) == 1
    worker.can_send = False
    worker.push([1], gradients[:1])
    world.loop.pass_by(SAMPLE_S)
    assert len(worker.sketches) == 1
    worker.can_send = True
    worker.push([1], gradients[:1])
    world.loop.pass_by(SAMPLE_S)
    assert FrequencySketch.unpack(worker.sketches[1]).total == 2


def test_the_mini_batches_of_a_second_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, 1)
    worker = world.workers[0]
    worker.rows.count_keys(world.table, 1024)
    world.server.set_rows([1], generation=3)
    world.server.install()
    world.settle()
    for first in (0, 5000, 10_000):
        keys = np.arange(first, first + 1500)
        worker.push(keys.tolist(), world.gradients(np.ones((keys.size, world.width))))
    world.loop.pass_by(SAMPLE_S)
    (packed,) = worker.batches
    assert [batch[0] for batch in KeyBatches.unpack(packed).batches] == [0, 5000]
