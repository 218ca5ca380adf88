# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that arrive faster than the controller takes them wait; none is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from controller_fixtures import TEST_TIMEOUT_S, run, running_controller
from http2_calls import Http2Calls
from switchfold.controller.api.request_check import RANGES
from switchfold.controller.api.session_service import SessionService
from switchfold.controller.api.waiting_calls import waiting_call_options
from switchfold.controller.jobs.job import Job, Worker
from switchfold.hostlib.control.controller_link import JOIN_METHOD
from switchfold.hostlib.control.session_api import session_pb2 as pb


def test_more_calls_than_grpc_lets_wait_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    num_calls = 3100  # gRPC's own hard limit is 3,000
    taken = 0

    async def take(_service: SessionService, _requests: object, _context: object) -> None:
        nonlocal taken
        taken += 1

    monkeypatch.setattr(SessionService, "Join", take)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            with Http2Calls(server.address, TEST_TIMEOUT_S) as calls:
                calls.start(JOIN_METHOD, num_calls)  # the loop, this one, takes no call meanwhile
                assert not taken
                await asyncio.to_thread(calls.finish)
                assert taken == num_calls

    run(scenario())


def test_workers_that_arrive_at_once_join_in_turns_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    num_jobs = 20
    turn = 0
    joined: list[int] = []

    async def count_turns() -> None:
        nonlocal turn
        while len(joined) < num_jobs:
            turn += 1
            await asyncio.sleep(0)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            check = server.views.check

            def note(job: Job, members: Iterable[Worker]) -> None:
                joined.append(turn)
                check(job, members)

            monkeypatch.setattr(server.views, "check", note)
            counting = asyncio.create_task(count_turns())
            joins = [
                pb.JoinRequest(
                    job_name=f"waits {number}",
                    num_workers=2,
                    wire_version=1,
                    address="10.0.0.1",
                    udp_port=5000,
                )
                for number in range(num_jobs)
            ]
            await asyncio.gather(*(server.membership.enter(join) for join in joins))
            await counting
            assert len(set(joined)) == len(joined) == num_jobs

    run(scenario())


def test_call_waits_as_long_as_any_worker_may():
    longest_wait = RANGES["JoinRequest.join_timeout_s"]
    assert longest_wait is not None
    waits_s = dict(waiting_call_options())["grpc.server_max_unrequested_time_in_server"]
    assert waits_s >= longest_wait[1]
