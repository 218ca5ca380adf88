# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Late workers of jobs that a controller runs on two leaves below a spine."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from live_testbed import LiveTestbed
from stream_clock import install_even_clock
from switchfold.bmv2_topos.topology.fabrics import leaf_spine
from switchfold.controller.views.join_reply import QUORUM_DEADLINE_S
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.errors import WorkerMissingError
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy

NUM_WORKERS = 4
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def testbed() -> Generator[LiveTestbed]:
    with LiveTestbed(leaf_spine(2, 1, 2)) as made:
        yield made


@pytest.fixture(autouse=True)
def _even_straggler_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    install_even_clock(monkeypatch)


@contextmanager
def sessions(testbed: LiveTestbed, job: str, policy: StragglerPolicy) -> Generator[list[Session]]:
    def join(worker_id: int) -> Session:
        variables = testbed.made.endpoint(worker_id).environment(job)
        variables["SWITCHFOLD_NUM_WORKERS"] = str(NUM_WORKERS)
        return join_from_environment(
            SessionOptions(timeout_s=120.0, straggler=policy), variables=variables
        )

    with contextlib.ExitStack() as stack, ThreadPoolExecutor(NUM_WORKERS) as pool:
        joins = [pool.submit(join, worker_id) for worker_id in range(NUM_WORKERS)]
        yield [stack.enter_context(each.result(DEADLINE_S)) for each in joins]


@pytest.mark.parametrize(
    ("policy", "deadline_s"),
    [
        (StragglerPolicy(quorum=3), QUORUM_DEADLINE_S),
        (StragglerPolicy(deadline_s=0.8), 0.8),
    ],
    ids=["quorum", "deadline"],
)
def test_job_goes_on_without_a_late_worker(
    testbed: LiveTestbed, policy: StragglerPolicy, deadline_s: float
) -> None:
    with sessions(testbed, f"late-{policy.quorum}", policy) as workers:
        assert {w.view.straggler.deadline_s for w in workers} == {deadline_s}
        arrays = [np.full(300, float(2**i), np.float32) for i in range(NUM_WORKERS)]
        futures = [w.allreduce(a, op="mean") for w, a in zip(workers[1:], arrays[1:], strict=True)]
        for future in futures:
            future.result(DEADLINE_S)
        futures.append(workers[0].allreduce(arrays[0], op="mean"))
        results = [future.result(DEADLINE_S) for future in futures]
        assert len({result.tobytes() for result in results}) == 1
        assert {future.num_contributors for future in futures} == {NUM_WORKERS - 1}
        np.testing.assert_allclose(results[0], np.mean(arrays[1:], axis=0), rtol=1e-6)
        last = [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)]
        assert len({future.result(DEADLINE_S).tobytes() for future in last}) == 1


def test_errors_of_all_workers_name_the_missing_one(testbed: LiveTestbed) -> None:
    with sessions(testbed, "missing", WAIT_FOR_ALL) as workers:
        ones = np.ones(300, np.float32)
        # Longer than the three that are there may stand still.
        futures = [worker.allreduce(ones, timeout_s=20.0) for worker in workers[:3]]
        for future in futures:
            error = future.exception(DEADLINE_S)
            assert isinstance(error, WorkerMissingError)
            assert error.worker_ids == [3], error
