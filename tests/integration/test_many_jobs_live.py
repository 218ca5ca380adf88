# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Eight jobs at once on one switch: each sums as if it were alone, with fewer or more slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from live_testbed import DEADLINE_S, LiveTestbed
from switchfold.bmv2_topos import state
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import NUM_SLOTS
from time_bound import wait_until

NUM_JOBS = 8
WORKERS = 2
DEFAULT_SLOTS = 128
STEPS = range(6)
SETTLED_S = 240.0
"""On a busy machine, a job that misses the switch's answers for a moment stays away for long."""
DTYPES = np.float32, np.int32, np.float64


@pytest.fixture
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveTestbed]:
    root: Path = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        with LiveTestbed(NUM_JOBS * WORKERS) as made:
            yield made


def tensor(job: int, worker: int, step: int) -> NDArray[Any]:
    generator = np.random.default_rng([job, worker, step])
    values = generator.standard_normal(700 + 100 * job) * 10 ** (job % 4)
    return values.astype(DTYPES[(job + step) % len(DTYPES)])


class Trainer:
    """The workers of one job, on hosts of their own."""

    def __init__(self, live: LiveTestbed, stack: ExitStack, job: int, name: str) -> None:
        self.job, self.name = job, name

        def join(worker: int) -> Session:
            endpoint = live.made.endpoint(job * WORKERS + worker)
            variables = endpoint.environment(name)
            variables["SWITCHFOLD_WORKER_ID"] = str(worker)
            variables["SWITCHFOLD_NUM_WORKERS"] = str(WORKERS)
            return join_from_environment(SessionOptions(timeout_s=60), variables=variables)

        with ThreadPoolExecutor(WORKERS) as pool:
            joins = [pool.submit(join, worker) for worker in range(WORKERS)]
            self.sessions = [stack.enter_context(one.result(DEADLINE_S)) for one in joins]

    @property
    def slot_count(self) -> int:
        return self.sessions[0].view.slot_count


def train(trainers: Sequence[Trainer], step: int) -> list[bytes]:
    """Let all jobs sum at the same time; return each one's result, the same at its workers."""
    arrays = [[tensor(t.job, w, step) for w in range(WORKERS)] for t in trainers]
    futures = [
        [session.allreduce(array) for session, array in zip(t.sessions, of_job, strict=True)]
        for t, of_job in zip(trainers, arrays, strict=True)
    ]
    found: list[bytes] = []
    for of_job, under_way in zip(arrays, futures, strict=True):
        results = [future.result(DEADLINE_S) for future in under_way]
        if of_job[0].dtype == np.int32:
            np.testing.assert_array_equal(results[0], np.sum(of_job, axis=0))
        assert len({result.tobytes() for result in results}) == 1
        found.append(results[0].tobytes())
    return found


def check_slots(live: LiveTestbed, num_jobs: int) -> None:
    """Check that slot ranges of the switch never overlap, and that each job has one in the end.

    A job that moves has two for a while, and that of an ended job goes a moment after its workers.
    """

    def is_one_each() -> bool:
        leases = live.show("switch", "show", "s1")["leases"]
        ends = [(lease["slot_base"], lease["slot_base"] + lease["slot_count"]) for lease in leases]
        assert all(end <= base for (_, end), (base, _) in pairwise(sorted(ends)))
        assert max(end for _, end in ends) <= NUM_SLOTS
        return len({lease["job"] for lease in leases}) == len(leases) == num_jobs

    wait_until(is_one_each, f"one slot range for each of {num_jobs} jobs")


@pytest.mark.timeout(600)
def test_eight_jobs_sum_as_if_each_were_alone(live: LiveTestbed) -> None:
    alone: list[list[bytes]] = []
    for job in range(NUM_JOBS):
        with ExitStack() as stack:
            solo = [Trainer(live, stack, job, f"alone {job}")]
            alone.append([train(solo, step)[0] for step in STEPS])

    with ExitStack() as few, ExitStack() as others:
        trainers: list[Trainer] = []
        for job in range(NUM_JOBS):
            trainers.append(Trainer(live, few if job < 2 else others, job, f"job {job}"))
            # Present jobs go on while the next one joins and their slots become fewer.
            assert train(trainers, 0) == [alone[t.job][0] for t in trainers]
        for step in STEPS:
            assert train(trainers, step) == [alone[job][step] for job in range(NUM_JOBS)]

        share = NUM_SLOTS * 7 // 8 // NUM_JOBS

        def are_shared() -> bool:
            return all(
                share * 7 // 8 <= t.slot_count <= share
                and live.show("job", "show", t.name)["path"] == "switch"
                for t in trainers
            )

        wait_until(
            are_shared,
            lambda: (
                f"{share} slots, at the switch, for {[(t.name, t.slot_count) for t in trainers]}: "
                f"{live.show('job', 'list')} {live.show('switch', 'show', 's1')['leases']}"
            ),
            SETTLED_S,
        )
        check_slots(live, NUM_JOBS)
        shown = [live.show("job", "show", trainer.name) for trainer in trainers]
        assert all(job["counts"]["completed"]["packets"] > 0 for job in shown)
        assert not any(job["counts"]["foreign_worker"]["packets"] for job in shown)
        assert train(trainers, 1) == [alone[job][1] for job in range(NUM_JOBS)]

        others.close()
        del trainers[2:]
        wait_until(
            lambda: all(t.slot_count == DEFAULT_SLOTS for t in trainers),
            "more slots again",
            SETTLED_S,
        )
        check_slots(live, len(trainers))
        for step in STEPS:
            assert train(trainers, step) == [alone[t.job][step] for t in trainers]
