# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that would take the last open files of the controller are refused in words."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from grpc import StatusCode

from controller_fixtures import FakeWorker, resume_of, run, running_controller
from file_limit import FILES, leave_free, same_limit_after
from switchfold.controller.api.open_files import RESERVED, raise_limit


@pytest.fixture(autouse=True)
def limit_as_before() -> Iterator[None]:
    with same_limit_after():
        yield


@pytest.mark.own_process
def test_worker_beyond_the_limit_of_open_files(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            first = await FakeWorker(server.address, 0, 1).join()
            resume = resume_of(await first.join_reply())
            leave_free(RESERVED - 1)
            limit, _ = resource.getrlimit(FILES)
            refused = await FakeWorker(server.address, 0, 1, job_name="other").knock()
            code, told = await refused.refusal()
            assert code is StatusCode.RESOURCE_EXHAUSTED
            assert f"may open {limit} files, one for each worker, and fewer than" in told
            back = await FakeWorker(server.address, 0, 1, resume=resume).join()
            await back.join_reply()
            leave_free(RESERVED * 2)
            taken_in = await FakeWorker(server.address, 0, 1, job_name="other").join()
            await taken_in.join_reply()
            for worker in (first, refused, back, taken_in):
                await worker.close()

    run(scenario())


def test_limit_is_raised_to_what_the_process_may_have():
    _, hard = resource.getrlimit(FILES)
    leave_free(RESERVED)
    low, _ = resource.getrlimit(FILES)
    assert low < raise_limit() == resource.getrlimit(FILES)[0] <= hard
