# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions over trees of softswitches: exact sums, also with loss on every hop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from switchfold import p4src
from switchfold.hostlib.options import Precision
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.softswitch.switch.impairments import Impairments
from tree_fabric import Shape
from tree_sessions import TreeOfSwitches

DEPTH_2: Shape = ((0, 1), (2, 3))
DEPTH_3: Shape = (((0, 2), 5), (1, 3))
DEADLINE_S = 60.0


def _bad_network(seed: int) -> Impairments:
    return Impairments(
        loss=0.05, duplication=0.05, reordering=0.05, reordering_delay_s=0.01, seed=seed
    )


def _allreduce(
    workers: list[Session], arrays: list[NDArray[Any]], precision: Precision = "exact"
) -> list[NDArray[Any]]:
    futures = [w.allreduce(a, precision=precision) for w, a in zip(workers, arrays, strict=True)]
    return [future.result(DEADLINE_S) for future in futures]


@pytest.mark.parametrize("names_children", [False, True])
@pytest.mark.parametrize("variant", ["narrow", "wide"])
def test_tree_sums_and_every_switch_sends_up_once(
    variant: p4src.Variant, names_children: bool
) -> None:
    generator = np.random.default_rng(1)
    with TreeOfSwitches(DEPTH_3, variant, names_children=names_children) as made:
        num_workers = len(made.tree.workers)
        arrays = [generator.standard_normal(20_000).astype(np.float32) for _ in range(num_workers)]
        with made.sessions() as workers:
            results = _allreduce(workers, arrays, "block")
        for result in results:
            np.testing.assert_allclose(result, np.sum(arrays, axis=0), atol=1e-5)
            assert result.tobytes() == results[0].tobytes()
        chunks = -(-20_000 // made.values_per_packet)
        rounds = chunks + -(-chunks // made.values_per_packet)
        assert made.outcomes(0)[Outcome.COMPLETED] == rounds
        for node in made.tree.nodes[1:]:
            outcomes = made.outcomes(node.number)
            assert outcomes[Outcome.SENT_UP] == rounds
            assert outcomes[Outcome.RESULT_STORED] == rounds
            assert outcomes[Outcome.ABSORBED] == rounds * (len(node.children) - 1)


def test_two_roots_share_the_slots() -> None:
    generator = np.random.default_rng(3)
    with TreeOfSwitches(DEPTH_2, "narrow", slot_counts=(32, 16), impairments=_bad_network) as made:
        with made.sessions() as workers:
            arrays = [generator.integers(-(2**28), 2**28, 9_600, np.int32) for _ in workers]
            for result in _allreduce(workers, arrays):
                np.testing.assert_array_equal(result, np.sum(arrays, axis=0))
        shares = [made.outcomes(job.tree.root)[Outcome.COMPLETED] for job in made.jobs]
        # An int32 tensor has no exponents, whose slots are taken off the front.
        assert sum(shares) == 300
        assert 1.4 < shares[0] / shares[1] < 2.6


@pytest.mark.parametrize("shape", [DEPTH_2, DEPTH_3], ids=["depth 2", "depth 3"])
def test_tree_sums_with_loss_on_every_hop(shape: Shape) -> None:
    generator = np.random.default_rng(2)
    with (
        TreeOfSwitches(shape, "narrow", slot_counts=(32,), impairments=_bad_network) as made,
        made.sessions() as workers,
    ):
        for length in (1, 333, 5_000):
            arrays = [generator.integers(-(2**28), 2**28, length, np.int32) for _ in workers]
            for result in _allreduce(workers, arrays):
                np.testing.assert_array_equal(result, np.sum(arrays, axis=0))
        for node in made.tree.nodes[1:]:
            outcomes = made.outcomes(node.number)
            assert outcomes[Outcome.RESENT]
            assert outcomes[Outcome.RESULT_IGNORED]


@pytest.mark.parametrize("late", [0, 5])
def test_tree_goes_on_without_a_late_worker(late: int) -> None:
    """Worker 0 is below two switches, worker 5 below one."""
    policy = StragglerPolicy(deadline_s=0.2)
    generator = np.random.default_rng(4)
    with (
        TreeOfSwitches(DEPTH_3, "narrow", straggler=policy, impairments=_bad_network) as made,
        made.sessions() as workers,
    ):
        ids = sorted(made.tree.workers)
        arrays = [generator.integers(-999, 999, 500, np.int32) for _ in ids]
        prompt = [index for index, worker in enumerate(ids) if worker != late]
        futures = [workers[index].allreduce(arrays[index]) for index in prompt]
        results = [future.result(DEADLINE_S) for future in futures]
        last = workers[ids.index(late)].allreduce(arrays[ids.index(late)])
        results.append(last.result(DEADLINE_S))
        assert len({result.tobytes() for result in results}) == 1
        counts = {future.num_contributors for future in (*futures, last)}
        assert len(counts) == 1
        # On a busy machine another worker may be late, too.
        assert 1 <= counts.pop() <= len(ids) - 1
        assert any(made.outcomes(node.number).get(Outcome.FLUSHED) for node in made.tree.nodes)
