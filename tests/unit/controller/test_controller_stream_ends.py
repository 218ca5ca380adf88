# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every stream that the controller ends says why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from controller_fixtures import FakeWorker, join_all, resume_of, run, running_controller
from switchfold.controller.jobs.membership import Membership
from switchfold.controller.views.views import Views
from switchfold.hostlib.control.session_api import session_pb2 as pb


def fail(*_args: Any, **_options: Any) -> None:
    raise RuntimeError("a fault")


@pytest.mark.parametrize("has_joined", [False, True])
def test_message_that_is_none(tmp_path: Path, has_joined: bool):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            worker = FakeWorker(server.address, 0, 1)
            if has_joined:
                await worker.knock()
                await worker.join_reply()
            await worker.send_bytes(b"\xff\xff")
            code, told = await worker.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert "a message is not a WorkerMessage of the session API" in told
            await worker.close()

    run(scenario())


def test_failure_at_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(Membership, "reach_barrier", fail)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            worker = await FakeWorker(server.address, 0, 1).join()
            await worker.join_reply()
            await worker.send(barrier=pb.Barrier(name="b"))
            assert await worker.refusal() == (
                StatusCode.INTERNAL,
                "job 'train': the controller failed at a message of worker 0, see its log; resume, "
                "or join again",
            )
            assert "RuntimeError: a fault" in caplog.text
            await worker.close()

    run(scenario())


def test_failure_at_the_start_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(Views, "plan", fail)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            for worker in (workers := await join_all(server.address, 2)):
                told = (await worker.receive()).job_ended.reason
                assert told == "the controller failed at its start: RuntimeError('a fault')"
                assert await worker.is_at_end()
            assert "a job could not be carried on" in caplog.text
            for worker in workers:
                await worker.close()

    run(scenario())


def test_stream_that_is_replaced(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            first = await FakeWorker(server.address, 0, 1).join()
            resume = resume_of(await first.join_reply())
            second = await FakeWorker(server.address, 0, 1, resume=resume).join()
            await second.join_reply()
            code, told = await first.refusal()
            assert code is StatusCode.ALREADY_EXISTS
            assert "worker 0 has resumed on another stream" in told
            for worker in (first, second):
                await worker.close()

    run(scenario())


def test_worker_whose_turn_comes_while_the_controller_stops(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            await server.membership.close()
            worker = await FakeWorker(server.address, 0).knock()
            async with asyncio.timeout(60):
                assert await worker.refusal() == (
                    StatusCode.UNAVAILABLE,
                    "the controller is being stopped; join again later",
                )
            await worker.close()

    run(scenario())
