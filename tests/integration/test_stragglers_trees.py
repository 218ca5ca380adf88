# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Late workers below trees of softswitches: partial results, the same bytes for all."""

from __future__ import annotations

import numpy as np
import pytest

from stream_clock import install_even_clock
from switchfold.hostlib.errors import WorkerMissingError
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.softswitch.switch.impairments import Impairments
from tree_fabric import Shape, Tree
from tree_sessions import TreeOfSwitches

DEPTH_1: Shape = (0, 1, 2)
DEPTH_2: Shape = ((0, 1), (2, 3))
DEPTH_3: Shape = (((0, 2), 5), (1, 3))


@pytest.fixture(autouse=True)
def _even_straggler_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    install_even_clock(monkeypatch)


def _bad_network(seed: int) -> Impairments:
    return Impairments(
        loss=0.03, duplication=0.03, reordering=0.03, reordering_delay_s=0.01, seed=seed
    )


@pytest.mark.parametrize("shape", [DEPTH_2, DEPTH_3], ids=["depth 2", "depth 3"])
@pytest.mark.parametrize("is_bad", [False, True], ids=["clean", "bad"])
def test_deadline_passes_through_the_tree(shape: Shape, is_bad: bool) -> None:
    straggler = StragglerPolicy(deadline_s=0.8)
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
        results = {future.result(60).tobytes() for future in prompt}
        assert len(results) == 1
        # If all flushes of a leaf are lost, the root may close before the leaf's sum arrives.
        fewest = 1 if is_bad else len(prompt)
        assert fewest <= prompt[0].num_contributors <= len(prompt)
        sums = {float(number) for number in range(1, 2 ** len(prompt))}
        assert set(np.unique(prompt[0].result())) <= sums
        # Long after that, its rounds are over, but the others retain the result.
        late = workers[-1].allreduce(arrays[-1])
        assert {late.result(60).tobytes()} == results
        assert late.num_contributors == prompt[0].num_contributors
        last = [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)]
        assert len({future.result(60).tobytes() for future in last}) == 1


@pytest.mark.parametrize("kind", ["all", "quorum", "deadline"])
@pytest.mark.parametrize("shape", [DEPTH_1, DEPTH_2, DEPTH_3], ids=["1", "2", "3"])
def test_policies_hold_at_every_depth(shape: Shape, kind: str) -> None:
    num_prompt = len(Tree(shape).workers) - 1
    policy = StragglerPolicy()
    if kind != "all":
        policy = StragglerPolicy(deadline_s=0.8, quorum=num_prompt if kind == "quorum" else None)
    with (
        TreeOfSwitches(shape, "narrow", slot_counts=(32,), straggler=policy) as made,
        made.sessions() as workers,
    ):
        arrays = [np.full(300, float(2**i), np.float32) for i in range(num_prompt + 1)]
        # Worker 0 is late; the other worker of its leaf is not.
        futures = [w.allreduce(a, op="mean") for w, a in zip(workers[1:], arrays[1:], strict=True)]
        if policy.allow_partial:
            for future in futures:
                future.result(60)
        else:
            assert not any(future.done() for future in futures)
        futures.append(workers[0].allreduce(arrays[0], op="mean"))
        results = [future.result(60) for future in futures]
        assert len({result.tobytes() for result in results}) == 1
        actual = arrays[1:] if policy.allow_partial else arrays
        np.testing.assert_allclose(results[0], np.mean(actual, axis=0), rtol=1e-6)
        assert {future.num_contributors for future in futures} == {len(actual)}
        # The straggler is one of them again.
        futures = [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)]
        results = [future.result(60) for future in futures]
        assert len({result.tobytes() for result in results}) == 1
        fewest = num_prompt if kind == "quorum" else num_prompt + 1
        assert futures[0].num_contributors >= fewest


@pytest.mark.parametrize(
    ("shape", "lacking", "named"),
    [
        (DEPTH_2, 3, {2: [3]}),
        (DEPTH_3, 3, {1: [3]}),
        # It is alone at its switch: all others are below other switches.
        (DEPTH_3, 5, {}),
    ],
)
def test_only_workers_that_are_missing_are_named(
    shape: Shape, lacking: int, named: dict[int, list[int]]
) -> None:
    with TreeOfSwitches(shape, "narrow") as made, made.sessions() as workers:
        ones = np.ones(10, np.int32)
        ids = sorted(made.tree.workers)
        futures = {
            # The switches have until then to answer the workers' probes.
            worker: session.allreduce(ones, timeout_s=4.0)
            for worker, session in zip(ids, workers, strict=True)
            if worker != lacking
        }
        for worker, future in futures.items():
            error = future.exception(60)
            assert isinstance(error, WorkerMissingError)
            # Other workers do not know for sure, but their text names those that may be missing.
            assert error.worker_ids == named.get(worker, [])
            assert str(lacking) in str(error).partition("waits for")[2]
