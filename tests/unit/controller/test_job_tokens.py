# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Job tokens: the first worker sets one, all others prove it, and a new job needs a new one."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import sqlite3
from pathlib import Path
from typing import Any

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
from fake_row_server import FakeRowServer
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.database import database
from switchfold.controller.database.database import Database
from switchfold.controller.errors import JobTokenError
from switchfold.controller.jobs.job_request import JobRequest, JobToken
from switchfold.controller.rows import row_lease
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.control.session_api import session_pb2 as pb

TOKEN = "of-this-job"
WRONG = ({}, {"job_token": "of-another"})
DENIED = StatusCode.PERMISSION_DENIED


async def refused(address: str, worker_id: int, /, **fields: Any) -> tuple[StatusCode, str]:
    """Return the status with which a worker is refused that sends these fields."""
    worker = await FakeWorker(address, worker_id, fields.pop("num_workers", 2), **fields).knock()
    answer = await worker.refusal()
    await worker.close()
    return answer


async def refused_server(address: str, server_id: int, /, **fields: Any) -> tuple[StatusCode, str]:
    """Return the same for a row server."""
    server = await FakeRowServer(address, server_id, **fields).attach()
    answer = await server.refusal()
    await server.close()
    return answer


async def close_all(*ends: FakeWorker | FakeRowServer) -> None:
    for end in ends:
        await end.close()


async def until_broken(server: ControllerServer, worker_id: int) -> None:
    """Wait until the controller knows that a worker's stream is over."""
    live = server.membership.live_job("train")
    assert live is not None
    while live.leases[worker_id].is_attached:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("wrong", WRONG, ids=["none", "another"])
def test_job_that_waits_refuses_strangers(tmp_path: Path, wrong: dict[str, str]):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            first = await FakeWorker(server.address, 0, job_token=TOKEN).join()
            code, text = await refused(server.address, 1, **wrong)
            assert code is DENIED
            assert "job 'train' refuses worker 1 at 10.0.0.2" in text
            assert "set SWITCHFOLD_JOB_TOKEN" in text
            assert not any(secret in text for secret in (TOKEN, "of-another"))
            second = await FakeWorker(server.address, 1, job_token=TOKEN).join()
            assert (await first.join_reply()).view.num_workers == 2
            await close_all(first, second)

    run(scenario())


@pytest.mark.parametrize("wrong", WRONG, ids=["none", "another"])
def test_running_job_refuses_strangers(tmp_path: Path, wrong: dict[str, str]):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            workers = await join_all(server.address, 2, job_token=TOKEN)
            replies = [await worker.join_reply() for worker in workers]
            for is_joining in (True, False):
                code, text = await refused(server.address, 2, is_joining=is_joining, **wrong)
                assert (code, "refuses worker 2" in text) == (DENIED, True)
            resume = resume_of(replies[0])  # with the worker's own secret
            assert (await refused(server.address, 0, resume=resume, **wrong))[0] is DENIED
            code, text = await refused_server(server.address, 0, **wrong)
            assert (code, "refuses row server 0" in text) == (DENIED, True)
            late = await FakeWorker(server.address, 2, is_joining=True, job_token=TOKEN).join()
            assert (await late.join_reply()).view.num_workers == 3
            back = FakeWorker(server.address, 0, resume=resume, job_token=TOKEN)
            assert (await (await back.join()).join_reply()).view.num_workers == 3
            rows = await FakeRowServer(server.address, job_token=TOKEN).attach()
            assert (await rows.place()).num_workers == 3
            await close_all(*workers, late, back, rows)

    run(scenario())


def test_stranger_does_not_end_a_job_whose_workers_are_away(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            (worker,) = await join_all(server.address, 1, job_token=TOKEN)
            resume = resume_of(await worker.join_reply())
            await worker.close()
            await until_broken(server, 0)
            for wrong in WRONG:
                assert (await refused(server.address, 0, num_workers=1, **wrong))[0] is DENIED
            back = FakeWorker(server.address, 0, 1, resume=resume, job_token=TOKEN)
            assert (await (await back.join()).join_reply()).view.generation == resume.generation
            await back.close()

    run(scenario())


def test_job_without_a_token_is_open_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            first = await FakeWorker(server.address, 0, job_name="open").join()
            code, text = await refused(server.address, 1, job_name="open", job_token=TOKEN)
            assert (code, "its first worker gave none" in text) == (DENIED, True)
            second = await FakeWorker(server.address, 1, job_name="open").join()
            await first.join_reply()
            closed = await FakeWorker(server.address, 2, job_name="closed", job_token=TOKEN).join()
            await close_all(first, second, closed)

    run(scenario())
    lines = [line for line in caplog.messages if "has no job token" in line]
    assert lines == ["job open has no job token: it is open to all workers"]


@pytest.mark.parametrize("name", ["train", "other"])
def test_token_of_an_ended_job_opens_no_new_one(tmp_path: Path, name: str):
    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            same = {"job_name": name, "num_workers": 1}
            async with serving(config) as server:
                (worker,) = await join_all(server.address, 1, job_token=TOKEN)
                await worker.join_reply()
                await worker.send(leave=pb.Leave())
                assert await worker.is_at_end()
                code, text = await refused(server.address, 0, **same, job_token=TOKEN)
                assert code is DENIED
                assert "its job token is that of job 'train', which has ended" in text
                assert "a new job needs a new token" in text
                assert server.membership.live_job(name) is None
                code, text = await refused_server(server.address, 0, job_name=name, job_token=TOKEN)
                assert (code, "which has ended" in text) == (DENIED, True)
                await worker.close()
            async with serving(config) as server:
                assert (await refused(server.address, 0, **same, job_token=TOKEN))[0] is DENIED
                (new,) = await join_all(server.address, 1, job_name=name, job_token="drawn-again")
                await new.join_reply()
                code, text = await refused(server.address, 1, job_name=name, job_token=TOKEN)
                assert (code, "which has ended" in text) == (DENIED, True)
                await new.close()

    run(scenario())


def test_token_of_a_live_job_opens_no_other(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            first = await FakeWorker(server.address, 0, job_token=TOKEN).join()
            code, text = await refused(server.address, 1, job_name="other", job_token=TOKEN)
            assert (code, "of job 'train', which is live" in text) == (DENIED, True)
            await first.close()

    run(scenario())


@pytest.mark.parametrize("is_joining", [True, False])
def test_worker_that_comes_as_its_job_ends_starts_no_new_one(tmp_path: Path, is_joining: bool):
    """At whatever moment: it is in the job that ends, or learns that it has ended."""

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            membership = server.membership
            for turns in range(12):
                own = {"job_name": f"job{turns}", "job_token": f"token-{turns}"}
                first = await FakeWorker(server.address, 0, 2 - is_joining, **own).join()
                if is_joining:
                    await first.join_reply()
                else:
                    while membership.live_job(f"job{turns}") is None:
                        await asyncio.sleep(0)
                late = FakeWorker(server.address, 1, is_joining=is_joining, **own)
                entering = asyncio.create_task(membership.enter(late.join_request))
                for _ in range(turns):
                    await asyncio.sleep(0.0002)
                await membership.stop_job(f"job{turns}", "test")
                (result,) = await asyncio.gather(entering, return_exceptions=True)
                if isinstance(result, BaseException):
                    assert isinstance(result, JobTokenError)
                    assert f"of job 'job{turns}', which has ended" in str(result)
                else:
                    assert turns > 0
                    assert result[0].has_ended
                assert membership.live_job(f"job{turns}") is None
                await close_all(first, late)

    run(scenario())


def test_workers_that_start_again_need_a_new_token(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            (worker,) = await join_all(server.address, 1, job_token=TOKEN)
            await worker.join_reply()
            await worker.close()
            await until_broken(server, 0)
            code, text = await refused(server.address, 0, num_workers=1, job_token=TOKEN)
            assert (code, "which has ended" in text) == (DENIED, True)
            (again,) = await join_all(server.address, 1, job_token="drawn-again")
            await again.join_reply()
            await again.close()

    run(scenario())


def test_one_token_opens_a_job_per_run(tmp_path: Path):
    """Process groups of torch use this: torchrun starts its ranks again with one environment."""

    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            rows = await FakeRowServer(server.address, job_token=TOKEN).attach()
            await rows.view()
            first = await FakeWorker(server.address, 0, job_token=TOKEN, job_run="1").join()
            code, text = await refused(server.address, 1, job_token=TOKEN, job_run="2")
            assert (code, "of another run" in text) == (StatusCode.ALREADY_EXISTS, True)
            second = await FakeWorker(server.address, 1, job_token=TOKEN, job_run="1").join()
            await first.join_reply()
            code, text = await refused(
                server.address, 2, is_joining=True, job_token=TOKEN, job_run="2"
            )
            assert (code, "of another run" in text) == (StatusCode.ALREADY_EXISTS, True)
            for number, worker in enumerate((first, second)):
                await worker.close()
                await until_broken(server, number)
            again = await join_all(server.address, 2, job_token=TOKEN, job_run="2")
            await again[0].join_reply()
            code, text = await refused(server.address, 1, job_token=TOKEN, job_run="1")
            assert (code, "which has ended" in text) == (DENIED, True)
            while (await rows.receive()).row_view.num_workers != 2:
                pass  # of the first run, its end, and of the second run
            back = await FakeRowServer(server.address, job_token=TOKEN).attach()
            assert (await back.place()).num_workers == 2
            await close_all(rows, back, *again)

    run(scenario())


def test_token_outlives_the_controller_and_is_shown_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake, resume_grace_s=3600.0)
            async with serving(config) as first:
                workers = await join_all(first.address, 2, job_token=TOKEN)
                replies = [await worker.join_reply() for worker in workers]
                await refused(first.address, 1, job_token="x" * 1025)
                client = OperatorClient(first.address)
                shown = await asyncio.to_thread(client.show_job, "train")
                listed = await asyncio.to_thread(client.list_jobs)
                assert TOKEN not in f"{shown} {listed}"
            content = config.database.read_bytes()
            assert TOKEN.encode() not in content
            assert hashlib.sha256(TOKEN.encode()).digest() in content
            async with serving(config) as second:
                resumes = [resume_of(reply) for reply in replies]
                for wrong in WRONG:
                    answer = await refused(second.address, 0, resume=resumes[0], **wrong)
                    assert answer[0] is DENIED
                    assert (await refused_server(second.address, 0, **wrong))[0] is DENIED
                back = [
                    await FakeWorker(second.address, n, resume=resume, job_token=TOKEN).join()
                    for n, resume in enumerate(resumes)
                ]
                assert (await back[0].join_reply()).view == replies[0].view
                late = FakeWorker(second.address, 2, is_joining=True, job_token=TOKEN)
                assert (await (await late.join()).join_reply()).view.num_workers == 3
                await close_all(*workers, *back, late)

    run(scenario())
    assert TOKEN not in caplog.text
    assert "xxx" not in caplog.text


def test_job_that_is_refused_at_once_does_not_spend_its_token(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            code, _ = await refused(
                server.address, 0, num_workers=1, job_token=TOKEN, slots_wanted=60000
            )
            assert code is StatusCode.RESOURCE_EXHAUSTED
            (worker,) = await join_all(server.address, 1, job_token=TOKEN)
            await worker.join_reply()
            await worker.close()

    run(scenario())


def test_row_servers_that_wait_need_the_token_of_the_job_that_comes(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            right = await FakeRowServer(server.address, 0, job_token=TOKEN).attach()
            wrong = [
                await FakeRowServer(server.address, n, **fields).attach()
                for n, fields in enumerate(WRONG, 1)
            ]
            for each in (right, *wrong):
                await each.view()
            same_place = await refused_server(
                server.address, 0, job_token="of-another", identity=bytes(16)
            )
            assert same_place[0] is StatusCode.ALREADY_EXISTS
            (worker,) = await join_all(server.address, 1, job_token=TOKEN)
            for each in wrong:
                assert (await each.refusal())[0] is DENIED
            assert (await right.place()).num_workers == 1
            await worker.send(leave=pb.Leave())
            code, text = await right.refusal()
            assert (code, "which has ended" in text) == (DENIED, True)
            await close_all(worker, right, *wrong)

    run(scenario())


def test_database_finds_the_job_of_a_token_by_an_index_until_it_forgets_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database, "KEPT_JOBS", 1)
    kept = Database(tmp_path / "state.sqlite3")
    tokens = [JobToken.of(pb.JoinRequest(job_token=f"token-{n}")) for n in range(3)]
    for token in tokens:
        job = kept.create_job(JobRequest(name="train", num_workers=1))
        kept.store_job_token(job.job_number, token)
        found = kept.job_of_token(token)
        assert found is not None
        assert found.job_number == job.job_number
        kept.end_job(job.job_number, "completed")
        assert kept.job_token(job.job_number) == token
    assert [kept.job_of_token(token) is not None for token in tokens] == [False, False, True]
    kept.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "state.sqlite3")) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT job_number FROM job_tokens WHERE digest = ? AND run = ?",
            (b"", ""),
        ).fetchall()
    assert "INDEX jobs_of_tokens (digest=? AND run=?)" in str(plan)


def test_jobs_of_the_release_before_have_no_token(tmp_path: Path):
    path = tmp_path / "state.sqlite3"
    before = Database(path)
    job = before.create_job(JobRequest(name="train", num_workers=1))
    before.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "ALTER TABLE jobs DROP COLUMN stale_results; "
            "ALTER TABLE jobs DROP COLUMN max_priority; "
            "ALTER TABLE jobs DROP COLUMN tolerated_loss; "
            "ALTER TABLE jobs DROP COLUMN worker_floor; "
            "DROP TABLE job_tokens; DELETE FROM meta WHERE key = 'term'; PRAGMA user_version = 3"
        )
    after = Database(path)
    assert not after.job_token(job.job_number).is_set
    after.store_job_token(job.job_number, JobToken(b"d" * 32))
    assert after.job_of_token(JobToken(b"d" * 32)) is not None
    after.close()


def test_row_server_comes_back_after_a_restart_of_the_controller_by_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(row_lease, "ROW_LEASE_S", 3600.0)

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake, resume_grace_s=3600.0)
            async with serving(config) as first:
                rows = await FakeRowServer(first.address, job_token=TOKEN).attach()
                await rows.view()
                (worker,) = await join_all(first.address, 1, job_token=TOKEN)
                generation = (await worker.join_reply()).view.generation
                assert (await rows.place()).generation == generation
                await close_all(rows)
            async with serving(config) as second:
                for wrong in WRONG:
                    assert (await refused_server(second.address, 0, **wrong))[0] is DENIED
                back = await FakeRowServer(second.address, job_token=TOKEN).attach()
                assert (await back.place()).generation == generation
                await close_all(worker, back)

    run(scenario())
