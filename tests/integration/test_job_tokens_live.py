# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Two jobs with tokens on one testbed: a worker of one gets nowhere in the other, which sums on."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from live_testbed import DEADLINE_S, LiveTestbed
from switchfold.bmv2_topos import state
from switchfold.bmv2_topos.processes.certificates import role_folder
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.credentials import Credentials, Role
from switchfold.hostlib.errors import JobRefusedError, PeerRefusedError
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session

WORKERS = 2
SHOW_TOKEN = "import os; print(os.environ['SWITCHFOLD_JOB_TOKEN'])"
JOIN_AND_SUM = """
import numpy as np
from switchfold.hostlib.config import join_from_environment
with join_from_environment() as session:
    print(session.allreduce(np.arange(3, dtype=np.int32)).result(60))
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveTestbed]:
    root: Path = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        with LiveTestbed(2 * WORKERS) as made:
            yield made


def join(
    live: LiveTestbed, host: int, worker_id: int, job: str, token: str, **more: str
) -> Session:
    """Join a job from a host."""
    variables = live.made.endpoint(host).environment(job) | {
        "SWITCHFOLD_WORKER_ID": str(worker_id),
        "SWITCHFOLD_NUM_WORKERS": str(WORKERS),
        "SWITCHFOLD_JOB_TOKEN": token,
        **more,
    }
    return join_from_environment(SessionOptions(timeout_s=DEADLINE_S), variables=variables)


@contextmanager
def sessions(
    live: LiveTestbed, job: str, hosts: Sequence[int], token: str
) -> Generator[list[Session]]:
    with ExitStack() as stack, ThreadPoolExecutor(WORKERS) as pool:
        joins = [pool.submit(join, live, host, n, job, token) for n, host in enumerate(hosts)]
        yield [stack.enter_context(joined.result(DEADLINE_S)) for joined in joins]


def check_sum(workers: Sequence[Session], step: int) -> None:
    """Sum a tensor, and compare it with numpy's sum."""
    generator = np.random.default_rng(step)
    arrays = [generator.integers(-999, 999, 3000, np.int32) for _ in workers]
    futures = [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)]
    for future in futures:
        np.testing.assert_array_equal(future.result(DEADLINE_S), np.sum(arrays, axis=0))
        assert future.num_contributors == WORKERS


def test_worker_of_one_job_is_refused_by_the_other(live: LiveTestbed) -> None:
    with sessions(live, "one", (0, 1), "token-of-one") as one:
        check_sum(one, 0)
        for wrong in ("token-of-two", ""):
            with pytest.raises(JobRefusedError, match="job 'one' refuses worker 2"):
                join(live, 2, 2, "one", wrong, SWITCHFOLD_JOINING="1")
            check_sum(one, 1)
        with sessions(live, "two", (2, 3), "token-of-two") as two:
            check_sum(one, 2)
            check_sum(two, 3)
            victim = one[1].view.members[1]
            for secret in ("token-of-two", live.made.endpoint(0).token, ""):
                own = Credentials(role_folder(live.made.run_directory, Role.WORKER))
                with PeerServer("127.0.0.1", token=secret, credentials=own) as stranger:
                    stranger.enter_job(one[0].view.job, 0)
                    with pytest.raises(PeerRefusedError, match="secret"):
                        stranger.fetch_result(victim, 0, DEADLINE_S)
            check_sum(one, 4)
            check_sum(two, 5)
    with pytest.raises(JobRefusedError, match="which has ended; a new job needs a new token"):
        join(live, 0, 0, "one", "token-of-one")


def test_each_run_of_workers_on_a_testbed_has_a_token_of_its_own(live: LiveTestbed) -> None:
    runs = [
        live.made.run_workers([sys.executable, "-c", SHOW_TOKEN], timeout_s=DEADLINE_S)
        for _ in range(2)
    ]
    tokens = [{result.output.strip() for result in results} for results in runs]
    assert [len(of_run) for of_run in tokens] == [1, 1]
    assert tokens[0] != tokens[1]
    assert {len(token) for of_run in tokens for token in of_run} == {32}


def test_jobs_of_one_name_follow_each_other_on_a_testbed(live: LiveTestbed) -> None:
    for _ in range(2):
        results = live.made.run_workers([sys.executable, "-c", JOIN_AND_SUM], timeout_s=DEADLINE_S)
        assert {result.output.strip() for result in results} == {"[0 4 8]"}
