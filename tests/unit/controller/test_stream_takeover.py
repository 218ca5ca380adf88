# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's stream is taken up with its secret alone, whatever else the caller knows.

Each thief sends what it can learn without the secret: job number, generation, worker id, address,
UDP port and the job's token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from grpc import StatusCode

from controller_fixtures import (
    FakeWorker,
    fake_switch,
    join_all,
    make_config,
    resume_of,
    run,
    running_controller,
    serving,
)
from switchfold.controller.server import ControllerServer
from switchfold.controller.views.view_change import Limits
from switchfold.hostlib.control.session_api import session_pb2 as pb

SECRETS = {"none": b"", "zeros": bytes(16), "short": b"s", "long": bytes(64)}


async def robbed(address: str, resume: pb.Resume, secrets: Sequence[bytes], **fields: Any) -> None:
    """Check that worker 0 is not to be had with any of these secrets."""
    for secret in secrets:
        attempt = pb.Resume()
        attempt.CopyFrom(resume)
        attempt.secret = secret
        thief = await FakeWorker(address, 0, resume=attempt, **fields).knock()
        code, text = await thief.refusal()
        assert code is StatusCode.PERMISSION_DENIED
        assert "only that worker may take up its stream" in text
        await thief.close()


async def comes_back(address: str, join_reply: pb.JoinReply, **fields: Any) -> FakeWorker:
    """Take up worker 0's stream with its own secret, and check that it is still in the job."""
    back = FakeWorker(address, 0, resume=resume_of(join_reply), **fields)
    assert (await (await back.join()).join_reply()).job_number == join_reply.job_number
    return back


async def until_broken(server: ControllerServer, worker_id: int) -> None:
    live = server.membership.live_job("train")
    assert live is not None
    while live.leases[worker_id].is_attached:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("token", ["", "of-this-job"])
def test_secret_is_needed_while_a_worker_is_there_and_while_it_may_come_back(
    tmp_path: Path, token: str
):
    async def scenario() -> None:
        own = {"job_token": token}
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            workers = await join_all(server.address, 2, **own)
            replies = [await worker.join_reply() for worker in workers]
            resume = resume_of(replies[0])
            secrets = [*SECRETS.values(), replies[1].resume_secret]
            await robbed(server.address, resume, secrets, **own)
            await workers[0].close()
            await until_broken(server, 0)
            await robbed(server.address, resume, secrets, **own)
            back = await comes_back(server.address, replies[0], **own)
            for worker in (*workers, back):
                await worker.close()

    run(scenario())


@pytest.mark.parametrize("token", ["", "of-this-job"])
def test_secret_is_needed_after_a_restart_of_the_controller(tmp_path: Path, token: str):
    async def scenario() -> None:
        own = {"job_token": token}
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake, resume_grace_s=3600.0)
            async with serving(config) as first:
                workers = await join_all(first.address, 2, **own)
                replies = [await worker.join_reply() for worker in workers]
            secrets = [*SECRETS.values(), replies[1].resume_secret]
            async with serving(config) as second:
                await robbed(second.address, resume_of(replies[0]), secrets, **own)
                back = await comes_back(second.address, replies[0], **own)
                await robbed(second.address, resume_of(replies[0]), secrets, **own)
                for worker in (*workers, back):
                    await worker.close()

    run(scenario())


@pytest.mark.parametrize("is_committed", [False, True])
def test_secret_is_needed_during_a_view_change(tmp_path: Path, is_committed: bool):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            workers = await join_all(server.address, 2, is_following=False)
            replies = [await worker.join_reply() for worker in workers]
            live = server.membership.live_job("train")
            assert live is not None
            manager = server.membership._manager  # pyright: ignore[reportPrivateUsage]
            changes, _ = manager._changes[live]  # pyright: ignore[reportPrivateUsage]
            # However long the thieves take, no worker that has not answered is to blame.
            with patch.object(changes, "_limits", Limits(graceful_answer_s=3600.0)):
                late = await FakeWorker(server.address, 2, is_joining=True).join()
                generation = (await workers[0].receive()).view_proposal.generation
                if is_committed:
                    for worker in workers:
                        await worker.send(view_ready=pb.ViewReady(generation=generation))
                    assert (await workers[0].receive()).HasField("view_commit")
                assert live.change is not None
                assert live.change.is_committed is is_committed
                resume = resume_of(replies[0])
                for named in (resume.generation, generation):
                    resume.generation = named
                    for proposed in (0, generation):
                        resume.proposed = proposed
                        await robbed(server.address, resume, [b"", bytes(16)])
                assert live.change is not None
                assert live.leases[0].is_attached
                back = await comes_back(server.address, replies[0], is_following=False)
                for worker in (*workers, late, back):
                    await worker.close()

    run(scenario())


def test_secret_of_an_earlier_job_of_the_name_is_worth_nothing(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            (worker,) = await join_all(server.address, 1)
            before = await worker.join_reply()
            await worker.send(leave=pb.Leave())
            while server.membership.live_job("train") is not None:
                await asyncio.sleep(0.01)
            (again,) = await join_all(server.address, 1)
            now = await again.join_reply()
            assert now.resume_secret != before.resume_secret
            await robbed(server.address, resume_of(now), [before.resume_secret])
            old = await FakeWorker(server.address, 0, 1, resume=resume_of(before)).knock()
            assert (await old.refusal())[0] is StatusCode.NOT_FOUND
            back = await comes_back(server.address, now)
            for each in (worker, again, old, back):
                await each.close()

    run(scenario())


def test_worker_that_joins_again_has_a_new_secret(tmp_path: Path):
    """The old one, also if somebody has read it, opens nothing any more."""

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake, reconnect_grace_s=60.0, resume_grace_s=3600.0)
            async with serving(config) as first:
                workers = await join_all(first.address, 2)
                replies = [await worker.join_reply() for worker in workers]
                await workers[0].close()
                await until_broken(first, 0)
                again = await FakeWorker(first.address, 0, is_joining=True).join()
                now = await again.join_reply()
                await robbed(first.address, resume_of(now), [replies[0].resume_secret])
            async with serving(config) as second:
                await robbed(second.address, resume_of(now), [replies[0].resume_secret])
                back = await comes_back(second.address, now)
                for each in (*workers, again, back):
                    await each.close()

    run(scenario())
