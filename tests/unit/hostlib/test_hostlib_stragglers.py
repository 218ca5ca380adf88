# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from fake_switch import FakeSwitch
from loopback import LOOPBACK
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import StragglerPolicy
from view_driver import QUICK

IMPAIRED: dict[str, Any] = {"loss": 0.03, "duplication": 0.05, "reordering": 0.05}
DEADLINE = StragglerPolicy(deadline_s=0.3)


@contextmanager
def sessions(switch: FakeSwitch) -> Generator[list[Session]]:
    """Sessions that serve their results to each other."""
    with ExitStack() as stack:
        for worker_id in range(switch.num_workers):
            switch.peers[worker_id] = PeerServer(LOOPBACK)
        yield [
            stack.enter_context(
                Session.direct(switch.view(i), switch.transport(i), QUICK, peers=switch.peers[i])
            )
            for i in range(switch.num_workers)
        ]


def test_deadline_closes_rounds_without_the_late_worker() -> None:
    switch = FakeSwitch(4, straggler=DEADLINE)
    arrays = [np.full(3000, float(i + 1), np.float32) for i in range(4)]
    with sessions(switch) as workers:
        futures = [w.allreduce(a, "mean") for w, a in zip(workers[:3], arrays[:3], strict=True)]
        # On a busy machine another worker may be late too: each chunk is the mean of some.
        means = {np.mean(some) for n in (1, 2, 3) for some in combinations((1.0, 2.0, 3.0), n)}
        for future in futures:
            assert set(np.unique(future.result(60))) <= means
            assert future.result().tobytes() == futures[0].result().tobytes()
            assert 1 <= future.num_contributors <= 3
            assert future.members == (0, 1, 2, 3)
        assert sum(w.statistics["value_packets_flushed"] for w in workers) > 0
        # Much later, when the rounds of its slots are over, it fetches the result from the others.
        late = workers[3].allreduce(arrays[3], "mean")
        assert late.result(60).tobytes() == futures[0].result().tobytes()
        assert late.num_contributors == futures[0].num_contributors
        # Later it takes part in some sum again: on a busy machine any worker may be late.
        until_s = time.monotonic() + 120
        while time.monotonic() < until_s:
            futures = [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)]
            assert len({future.result(60).tobytes() for future in futures}) == 1
            if futures[0].num_contributors == 4:
                np.testing.assert_array_equal(futures[0].result(), np.full(3000, 10.0))
                break
        else:
            pytest.fail("the late worker never came back")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_worker_many_tensors_behind_catches_up_by_fetching(dtype: str) -> None:
    switch = FakeSwitch(3, straggler=StragglerPolicy(quorum=2), slot_count=8, seed=6, **IMPAIRED)
    rng = np.random.default_rng(3)
    tensors = [[rng.integers(-99, 99, 500).astype(dtype) for _ in range(3)] for _ in range(12)]
    with sessions(switch) as workers:
        done = [
            [worker.allreduce(tensor[i]) for tensor in tensors[:-1]]
            for i, worker in enumerate(workers[:2])
        ]
        expected = [future.result(60) for future in done[0]]
        late = [workers[2].allreduce(tensor[2]) for tensor in tensors[:-1]]
        for mine, other, first in zip(late, done[1], expected, strict=True):
            assert mine.result(60).tobytes() == first.tobytes() == other.result(60).tobytes()
            assert mine.num_contributors == 2
        last = [w.allreduce(a) for w, a in zip(workers, tensors[-1], strict=True)]
        assert len({future.result(60).tobytes() for future in last}) == 1


def test_every_worker_sees_the_same_bytes_whoever_is_late() -> None:
    switch = FakeSwitch(4, straggler=StragglerPolicy(deadline_s=0.03), seed=7, **IMPAIRED)
    rng = np.random.default_rng(4)
    tensors = [[rng.standard_normal(700).astype(np.float32) for _ in range(4)] for _ in range(8)]
    with sessions(switch) as workers:
        futures: list[list[AllreduceFuture]] = [[] for _ in workers]
        for step, tensor in enumerate(tensors):
            late = step % 4
            for i, worker in enumerate(workers):
                if i != late:
                    futures[i].append(worker.allreduce(tensor[i], "mean"))
            futures[(late + 1) % 4][-1].result(60)
            futures[late].append(workers[late].allreduce(tensor[late], "mean"))
        for group in zip(*futures, strict=True):
            assert len({future.result(60).tobytes() for future in group}) == 1
            assert all(1 <= future.num_contributors <= 4 for future in group)
            assert len({future.num_contributors for future in group}) == 1
