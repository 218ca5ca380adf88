# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse updates, of some blocks of a tensor: alone, in sums, and of no use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_groups import GroupPolicy
from fake_transfers import grant_everything, worker
from loopback import LOOPBACK
from switchfold.hostlib.errors import (
    ConfigurationError,
    NonFiniteGradientError,
    RowShapeError,
)
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from transfer_scene import DEFINITION, VALUES, WAIT_S, TransferScene, values

WIDTH = DEFINITION.block_values
ROW_BYTES = 8 + 4 * WIDTH


def blocks_of(*numbers: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def rows(seed: int, count: int) -> Values:
    return values(seed, count * WIDTH).reshape(count, WIDTH)


def test_only_the_blocks_travel_and_change(tmp_path: Path) -> None:
    with TransferScene(grant_everything(), folder=tmp_path) as scene:
        fabric = scene.worker(0)
        expected = np.zeros((DEFINITION.num_blocks, WIDTH), np.float32)
        for seed, numbers in enumerate([(7, 2), (2,), (29, 0, 11)]):
            pushed = rows(seed, len(numbers))
            outcome = fabric.push_blocks(blocks_of(*numbers), pushed).result(WAIT_S)
            assert outcome.parts[0].version == seed + 1
            expected[list(numbers)] += pushed
        asked = scene.fake.said(worker(0), "requested")
        assert [each.size_bytes for each in asked] == [2 * ROW_BYTES, ROW_BYTES, 3 * ROW_BYTES]
        assert {each.whole_bytes for each in asked} == {DEFINITION.num_blocks * ROW_BYTES}
        assert len({each.sum_key for each in asked} - {0}) == 1
        norm = float(np.linalg.norm(rows(0, 2)))
        assert asked[0].norm == pytest.approx(norm)
        fabric.push(values(9)).result(WAIT_S)
        dense = scene.fake.said(worker(0), "requested")[-1]
        assert dense.whole_bytes == 0
        assert dense.sum_key != asked[0].sum_key
        expected += values(9).reshape(-1, WIDTH)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), expected.reshape(-1))
        scene.fake.next_sequence = 4
        scene.cluster.restart(0)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), expected.reshape(-1))
        assert fabric.commits.tolist() == [4]


def test_a_server_without_a_block_has_no_part() -> None:
    with TransferScene(grant_everything(), num_servers=2) as scene:
        fabric = scene.worker(0)
        (only,) = fabric._tensor.block_parts(blocks_of(0), rows(1, 1))
        outcome = fabric.push_blocks(blocks_of(0), rows(1, 1)).result(WAIT_S)
        assert outcome.is_committed
        assert [part.shard for part in outcome.parts] == [only.shard]
        fabric.get().result(WAIT_S)
        assert fabric.commits.tolist() == [int(shard == only.shard) for shard in range(2)]


def test_sparse_updates_in_a_sum_count_as_if_each_came_alone(tmp_path: Path) -> None:
    """The first blocks are of all updates, the others of one or two."""
    pushed = [(0, 1, 5, 29), (0, 1, 6), (0, 1, 5)]
    policy = GroupPolicy(len(pushed), len(pushed), factor=0.5)
    with TransferScene(policy, len(pushed) + 1, folder=tmp_path) as scene:
        aggregator = scene.worker(len(pushed), aggregate=True, aggregate_address=LOOPBACK)
        members = [scene.worker(number) for number in range(len(pushed))]
        scene.fake.wait_for(worker(len(pushed)), "register")
        expected = np.zeros((DEFINITION.num_blocks, WIDTH), np.float32)
        futures = []
        for seed, (member, numbers) in enumerate(zip(members, pushed, strict=True)):
            update = rows(seed, len(numbers))
            futures.append(member.push_blocks(blocks_of(*numbers), update))
            expected[list(numbers)] += np.float32(0.5) * update
        outcomes = [future.result(WAIT_S) for future in futures]
        assert [outcome.parts[0].is_summed for outcome in outcomes] == [True] * 3
        assert aggregator.gathered["sent_sums"] == 1
        got = members[0].get().result(WAIT_S)
        np.testing.assert_array_equal(got, expected.reshape(-1))
        assert members[0].commits.tolist() == [3]
        scene.fake.next_sequence = 3
        scene.cluster.restart(0)
        got = members[0].get().result(WAIT_S)
        np.testing.assert_array_equal(got, expected.reshape(-1))
        assert members[0].commits.tolist() == [3]


def test_updates_whose_sum_would_be_too_large_travel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "switchfold.hostlib.parameter_server.transfers.group_path"
    monkeypatch.setattr(f"{module}.MAX_BATCH_BYTES", DEFINITION.num_blocks * ROW_BYTES - 1)
    with TransferScene(grant_everything()) as scene:
        fabric = scene.worker(0)
        fabric.push_blocks(blocks_of(1), rows(1, 1)).result(WAIT_S)
        (asked,) = scene.fake.said(worker(0), "requested")
        assert asked.sum_key == 0


@pytest.mark.parametrize(
    ("numbers", "shape", "text"),
    [
        ((1, 1), (2, WIDTH), "each once"),
        ((-1,), (1, WIDTH), r"must lie in 0\.\.29"),
        ((30,), (1, WIDTH), r"must lie in 0\.\.29"),
        ((), (0, WIDTH), "n at least 1"),
        ((1, 2), (1, WIDTH), r"n times 100 values"),
        ((1,), (1, WIDTH - 1), r"n times 100 values"),
        ((1,), (WIDTH,), r"n times 100 values"),
    ],
)
def test_blocks_that_are_none_are_refused(
    numbers: tuple[int, ...], shape: tuple[int, ...], text: str
) -> None:
    with TransferScene(grant_everything()) as scene:
        fabric = scene.worker(0)
        with pytest.raises(RowShapeError, match=text):
            fabric.push_blocks(blocks_of(*numbers), np.ones(shape, np.float32))
        assert fabric.counters["pushes"] == 0


def test_other_kinds_of_numbers_are_refused() -> None:
    with TransferScene(grant_everything()) as scene:
        fabric = scene.worker(0)
        with pytest.raises(RowShapeError, match="give int64 and float32"):
            fabric.push_blocks(np.array([1], np.int32), rows(1, 1))  # type: ignore[arg-type]
        with pytest.raises(RowShapeError, match="give int64 and float32"):
            fabric.push_blocks(blocks_of(1), np.ones((1, WIDTH)))  # type: ignore[arg-type]
        bad = rows(1, 2)
        bad[1, 3] = np.nan
        with pytest.raises(NonFiniteGradientError, match="key 4 of table 'w'"):
            fabric.push_blocks(blocks_of(8, 4), bad)


def test_what_lies_beyond_the_end_of_the_tensor_is_nothing() -> None:
    definition = TensorDefinition(name="w", num_values=VALUES - 30, block_values=WIDTH)
    with TransferScene(grant_everything(), definition=definition) as scene:
        fabric = scene.worker(0)
        ones = np.ones((1, WIDTH), np.float32)
        fabric.push_blocks(blocks_of(29), ones).result(WAIT_S)
        (asked,) = scene.fake.said(worker(0), "requested")
        assert asked.norm == pytest.approx((WIDTH - 30) ** 0.5)
        got = fabric.get().result(WAIT_S)
        assert got.sum() == WIDTH - 30
        assert ones.sum() == WIDTH


def test_a_job_with_iterations_needs_all_values() -> None:
    definition = TensorDefinition(name="w", num_values=VALUES, block_values=WIDTH, staleness=1)
    with (
        TransferScene(grant_everything(), definition=definition, staleness=1) as scene,
        pytest.raises(ConfigurationError, match="push_blocks in a job with iterations"),
    ):
        scene.worker(0).push_blocks(blocks_of(1), rows(1, 1))
