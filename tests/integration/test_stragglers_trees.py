# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Late workers below trees of softswitches: partial results, the same bytes for all."""

from __future__ import annotations

import numpy as np
import pytest

from hostlib.errors import WorkerMissingError
from hostlib.straggler import StragglerPolicy
from softswitch.impairments import Impairments
from tree_fabric import Shape
from tree_sessions import TreeOfSwitches

DEPTH_2: Shape = ((0, 1), (2, 3))
DEPTH_3: Shape = (((0, 2), 5), (1, 3))


def _bad_network(seed: int) -> Impairments:
    return Impairments(
        loss=0.03, duplication=0.03, reordering=0.03, reordering_delay_s=0.01, seed=seed
    )


@pytest.mark.parametrize("shape", [DEPTH_2, DEPTH_3], ids=["depth 2", "depth 3"])
@pytest.mark.parametrize("is_bad", [False, True], ids=["clean", "bad"])
def test_deadline_passes_through_the_tree(shape: Shape, is_bad: bool) -> None:
    straggler = StragglerPolicy(deadline_s=0.5)
    impairments = _bad_network if is_bad else None
    with (
        TreeOfSwitches(
            shape, "narrow", slot_counts=(32,), straggler=straggler, impairments=impairments
        ) as made,
        made.sessions() as workers,
    ):
        members = sorted(made.tree.workers)
        arrays = [np.full(2000, float(2**i), np.float32) for i in range(len(members))]
        prompt = [w.allreduce(a) for w, a in zip(workers[:-1], arrays[:-1], strict=True)]
        results = {future.result(30).tobytes() for future in prompt}
        assert len(results) == 1
        # Who waits below another leaf may close a round before this leaf's sum is there.
        assert 1 <= prompt[0].num_contributors <= len(prompt)
        sums = {float(number) for number in range(1, 2 ** len(prompt))}
        assert set(np.unique(prompt[0].result())) <= sums
        # Long after: its rounds are gone, but the others retain the result.
        late = workers[-1].allreduce(arrays[-1])
        assert {late.result(30).tobytes()} == results
        assert late.num_contributors == prompt[0].num_contributors
        last = [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)]
        assert len({future.result(30).tobytes() for future in last}) == 1


def test_missing_worker_is_named_through_the_tree() -> None:
    with TreeOfSwitches(DEPTH_2, "narrow") as made, made.sessions() as workers:
        ones = np.ones(10, np.int32)
        futures = [w.allreduce(ones, timeout_s=1.0) for w in workers[:3]]
        errors = [future.exception(10) for future in futures]
        assert all(isinstance(error, WorkerMissingError) for error in errors)
        # Workers below the complete leaf hear from the root who is missing.
        assert [getattr(error, "worker_ids", None) for error in errors[:2]] == [[2, 3], [2, 3]]
