# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that submit different tensors: all are told who has what, long before the timeout."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from live_testbed import LiveTestbed
from switchfold.hostlib import PeerMismatchError, SessionBrokenError
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import StragglerPolicy

NUM_WORKERS = 3
WAIT_S = 60.0
TIMEOUT_S = 600.0
POLICY = StragglerPolicy(tolerance=LossTolerance(loss=0.1))
SOME = np.arange(320, dtype=np.int32)

Submit = Callable[[Session], AllreduceFuture]


@pytest.fixture(scope="module")
def testbed() -> Generator[LiveTestbed]:
    with LiveTestbed(NUM_WORKERS) as made:
        yield made


def tensor(array: NDArray[Any] = SOME, **options: Any) -> Submit:
    return lambda session: session.allreduce(array, timeout_s=TIMEOUT_S, **options)


@pytest.mark.parametrize(
    ("job", "usual", "other", "text"),
    [
        (
            "tolerance",
            tensor(tolerance=LossTolerance(loss=0.05)),
            tensor(tolerance=LossTolerance(loss=0.2, worker_floor=0.5)),
            "tolerance loss 0.05 with worker_floor 0.9 on workers 0, 2,"
            " loss 0.2 with worker_floor 0.5 on worker 1",
        ),
        (
            "elements",
            tensor(),
            tensor(SOME[:33]),
            "elements 320 on workers 0, 2, 33 on worker 1",
        ),
        (
            "dtype",
            tensor(),
            tensor(SOME.astype(np.float32), precision="block"),
            "dtype int32 on workers 0, 2, float32 on worker 1",
        ),
        ("label", tensor(label="a"), tensor(label="b"), "label 'a' on workers 0, 2, 'b' on"),
    ],
)
def test_all_workers_are_told_what_differs(
    testbed: LiveTestbed, job: str, usual: Submit, other: Submit, text: str
) -> None:
    with testbed.sessions(NUM_WORKERS, job, straggler=POLICY) as workers:
        # A job that tolerates loss may let go what is late on a busy machine.
        whole = tensor(tolerance=LossTolerance(loss=0))
        for future in [whole(worker) for worker in workers]:
            np.testing.assert_array_equal(future.result(WAIT_S), NUM_WORKERS * SOME)
        for worker in workers:
            (other if worker.view.worker_id == 1 else usual)(worker)
        # A worker that is done with a smaller tensor waits for the next one.
        for future in [tensor()(worker) for worker in workers]:
            error = future.exception(WAIT_S)
            assert isinstance(error, PeerMismatchError)
            assert f"tensor 2 has {text}" in str(error)
        for worker in workers:
            with pytest.raises(SessionBrokenError, match="tensor 2 has"):
                tensor()(worker)
