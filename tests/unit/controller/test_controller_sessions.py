# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions: joining, refusals, barriers, leases, and the end of jobs, on a fake switch."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from controller_fixtures import (
    HOSTS,
    FakeWorker,
    fake_switch,
    join_all,
    make_config,
    resume_all,
    resume_of,
    run,
    running_controller,
    serving,
    silence,
)
from hand_clock import HandClock
from switchfold.controller.jobs.job import JobState
from switchfold.controller.server import ControllerServer
from switchfold.controller.tables.outcome import TREE_OUTCOMES
from switchfold.hostlib.control.session_api import session_pb2 as pb
from time_bound import until


def test_session_join_barrier_leave(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            empty = fake.tables()
            workers = await join_all(server.address, 4, slots_wanted=32)
            join_replies = [await worker.join_reply() for worker in workers]
            for worker_id, join_reply in enumerate(join_replies):
                assert (join_reply.view.child_id, join_reply.view.worker_bitmap) == (
                    worker_id,
                    1 << worker_id,
                )
                assert join_reply.view.trees == join_replies[0].view.trees
                assert [member.worker_id for member in join_reply.view.members] == [0, 1, 2, 3]
            assert join_replies[0].view.trees[0].slot_count == 32
            assert (join_replies[0].boundary, join_replies[0].values_per_packet) == (0, 32)
            inserted = sum(fake.tables().values()) - sum(empty.values())
            assert inserted == 1 + 1 + 4 + 4 + len(TREE_OUTCOMES)
            for worker in workers:
                await worker.send(barrier=pb.Barrier(name="start"))
            for worker in workers:
                assert (await worker.receive()).barrier_released.name == "start"
            for worker in workers:
                await worker.send(leave=pb.Leave())
                assert await worker.is_at_end()
            again = await join_all(server.address, 2, slots_wanted=1024)
            assert (await again[0].join_reply()).view.generation > join_replies[0].view.generation
            for worker in (*workers, *again):
                await worker.close()

    run(scenario())


def test_session_barrier_name_used_again_is_a_new_barrier(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            workers = await join_all(server.address, 2)
            for worker in workers:
                await worker.join_reply()
            for use in (0, 0, 1, 2):
                barrier = pb.Barrier(name="epoch", use=use)
                await workers[0].send(barrier=barrier)
                await workers[1].send(barrier=barrier)
                for worker in workers:
                    released = (await worker.receive()).barrier_released
                    assert (released.name, released.use) == ("epoch", use)
            for worker in workers:
                await worker.close()

    run(scenario())


def test_session_barrier_released_while_away_is_answered_again(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            (worker,) = await join_all(server.address, 1)
            await worker.join_reply()
            for _ in range(2):
                await worker.send(barrier=pb.Barrier(name="x", use=1))
                assert (await worker.receive()).barrier_released.name == "x"
            await worker.close()

    run(scenario())


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"num_workers": 65536}, StatusCode.INVALID_ARGUMENT, "1 to 65535"),
        ({"num_workers": 1}, StatusCode.INVALID_ARGUMENT, "not below the 1 workers"),
        ({"num_workers": 3}, StatusCode.INVALID_ARGUMENT, "the first worker said 2 workers"),
        ({"straggler": pb.Straggler(quorum=1)}, StatusCode.INVALID_ARGUMENT, "quorum 1"),
        ({"path": pb.SWITCH}, StatusCode.INVALID_ARGUMENT, "path switch"),
        ({"weight": -1.0}, StatusCode.INVALID_ARGUMENT, "JoinRequest.weight is -1.0; 0 to 1000000"),
        ({"max_priority": 8}, StatusCode.INVALID_ARGUMENT, "JoinRequest.max_priority is 8; 0 to 7"),
        ({"max_priority": 2}, StatusCode.INVALID_ARGUMENT, "said 2 workers (at least 1)"),
        ({"min_workers": 3}, StatusCode.INVALID_ARGUMENT, "above the 2 workers"),
        ({"worker_id": 0}, StatusCode.INVALID_ARGUMENT, "taken by 10.0.0.1"),
        ({"wire_version": 9}, StatusCode.FAILED_PRECONDITION, "wire version 9"),
        ({"values_per_packet": 352}, StatusCode.FAILED_PRECONDITION, "352 values per packet"),
        ({"job_name": "big", "slots_wanted": 1025}, StatusCode.RESOURCE_EXHAUSTED, "has only 1024"),
        ({"job_name": ""}, StatusCode.INVALID_ARGUMENT, "name must have"),
        ({"address": "10.1.1.1"}, StatusCode.INVALID_ARGUMENT, "not a configured host"),
        ({"resume": pb.Resume(generation=5)}, StatusCode.NOT_FOUND, "start the job again"),
    ],
)
def test_session_refusal(tmp_path: Path, fields: dict[str, Any], status: StatusCode, text: str):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            first = await FakeWorker(server.address, 0).join()
            await first.send(barrier=pb.Barrier(name="only to be sure that it has joined"))
            while server.membership.live_job("train") is None:
                await first.send(heartbeat=pb.Heartbeat())
            second = await FakeWorker(server.address, 1, **fields).knock()
            code, details = await second.refusal()
            assert code is status
            assert text in details
            for worker in (first, second):
                await worker.close()

    run(scenario())


def num_there(server: ControllerServer) -> int:
    """Return how many workers of the job have arrived."""
    live = server.membership.live_job("train")
    return 0 if live is None else len(live.leases)


@pytest.mark.parametrize("whose", ["controller", "worker"])
def test_session_names_workers_that_never_arrive(tmp_path: Path, whose: str):
    # Both have time to come, however busy the machine is; the worker gives a little more.
    limit_s = {"controller": (30.0, 0.0), "worker": (50.0, 31.0)}[whose]
    limits_s = {"lease_s": 600.0, "join_timeout_s": limit_s[0]}

    async def scenario() -> None:
        async with running_controller(tmp_path, **limits_s) as (server, fake):
            workers = await join_all(server.address, 2, num_workers=4, join_timeout_s=limit_s[1])
            await until(lambda: num_there(server) == 2)
            await HandClock().pass_by(30.0)
            for worker in workers:
                code, details = await worker.refusal()
                assert code is StatusCode.DEADLINE_EXCEEDED
                assert "worker 2, 3 of 4 never arrived within 30 s" in details
                await worker.close()
            assert sum(fake.tables().values()) == 4

    run(scenario())


def test_session_that_waits_in_vain_says_who_came_with_other_terms(tmp_path: Path):
    """A worker that is refused may come again with the job's terms; if not, all are told of it."""

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            tolerance = pb.Tolerance(loss=0.1, worker_floor=0.8)
            terms = {"num_workers": 3, "straggler": pb.Straggler(tolerance=tolerance)}
            first = await FakeWorker(server.address, 0, **terms).join()
            await first.send(barrier=pb.Barrier(name="only to be sure that it has joined"))
            while (live := server.membership.live_job("train")) is None:
                await first.send(heartbeat=pb.Heartbeat())
            tolerance.loss = 0.3
            terms["straggler"] = pb.Straggler(tolerance=tolerance)
            other = await FakeWorker(server.address, 2, **terms).knock()
            assert (await other.refusal())[0] is StatusCode.INVALID_ARGUMENT
            server.membership._manager.join_timed_out(live)
            code, details = await first.refusal()
            assert code is StatusCode.DEADLINE_EXCEEDED
            assert "worker 1, 2 of 3 never arrived" in details
            assert "Refused: worker 2 wanted 3 workers" in details
            assert "may lack 0.3 of all" in details
            assert "the first worker said 3 workers" in details
            assert "may lack 0.1 of all" in details
            for worker in (first, other):
                await worker.close()

    run(scenario())


def test_session_token(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, token="secret") as (server, _):
            wrong = FakeWorker(server.address, 0, 1, token="guess")
            assert (await wrong.refusal())[0] is StatusCode.UNAUTHENTICATED
            right = await FakeWorker(server.address, 0, 1, token="secret").join()
            await right.join_reply()
            for worker in (wrong, right):
                await worker.close()

    run(scenario())


@pytest.mark.parametrize("how", ["silent", "broken"])
def test_session_lost_worker_ends_a_job_that_needs_it(tmp_path: Path, how: str):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            entries = sum(fake.tables().values())
            workers = await join_all(server.address, 3, min_workers=3)
            for worker in workers:
                await worker.join_reply()
            if how == "silent":
                silence(server, workers[2])
            else:
                await workers[2].close()
            for worker in workers[:2]:
                assert "worker 2 lost" in (await worker.receive()).job_ended.reason
                assert await worker.is_at_end()
            fresh = await join_all(server.address, 1, job_name="next")
            await fresh[0].join_reply()
            await fresh[0].send(leave=pb.Leave())
            assert await fresh[0].is_at_end() or (await fresh[0].receive()).HasField("job_ended")
            await server.membership.settled()
            assert sum(fake.tables().values()) == entries, "old entries are gone"
            for worker in (*workers, *fresh):
                await worker.close()

    run(scenario())


def test_session_worker_comes_back_within_its_lease(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            workers = await join_all(server.address, 2)
            await workers[0].join_reply()
            join_reply = await workers[1].join_reply()
            await workers[1].close()
            resume = resume_of(join_reply)
            back = await FakeWorker(server.address, 1, resume=resume).join()
            assert (await back.join_reply()).view.generation == join_reply.view.generation
            for worker in (workers[0], back):
                await worker.send(barrier=pb.Barrier(name="b"))
            for worker in (workers[0], back):
                assert (await worker.receive()).barrier_released.name == "b"
                await worker.close()

    run(scenario())


def test_session_restarted_workers_replace_a_job_without_workers(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            workers = await join_all(server.address, 2)
            first = [(await worker.join_reply()).view.generation for worker in workers]
            live = server.membership.live_job("train")
            assert live is not None
            taken = await FakeWorker(server.address, 1).knock()
            assert (await taken.refusal())[0] is StatusCode.ALREADY_EXISTS
            for worker in workers:
                await worker.close()
            async with asyncio.timeout(60):
                while any(lease.is_attached for lease in live.leases.values()):
                    await asyncio.sleep(0.01)
            again = await join_all(server.address, 2)
            for worker in again:
                assert (await worker.join_reply()).view.generation > first[0]
            for worker in (*workers, taken, *again):
                await worker.close()

    run(scenario())


def test_session_switch_that_refuses_the_tables(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconcile_interval_s=60.0) as (server, fake):
            fake.refuse_writes = True
            worker = await FakeWorker(server.address, 0, 1).knock()
            code, details = await worker.refusal()
            assert code is StatusCode.UNAVAILABLE
            assert "table is full" in details
            await worker.close()

    run(scenario())


def test_session_first_message_must_be_join_request(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            worker = FakeWorker(server.address, 0)
            await worker.send(leave=pb.Leave())
            code, details = await worker.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert "must be JoinRequest" in details
            await worker.close()

    run(scenario())


def test_session_survives_a_controller_restart(tmp_path: Path):
    """Entries stay, the job stays running, workers resume."""

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            async with serving(config) as first:
                workers = await join_all(first.address, 2)
                join_replies = [await worker.join_reply() for worker in workers]
                join_reply = join_replies[0]
                entries = dict(fake.entities)
                pushes, writes = fake.num_pushes, fake.num_writes
            assert (await workers[0].refusal())[0] is StatusCode.UNAVAILABLE
            assert fake.entities == entries, "a controller that stops leaves running jobs alone"
            async with serving(config) as second:
                assert (fake.num_pushes, fake.num_writes) == (pushes, writes)
                live = second.membership.live_job("train")
                assert live is not None
                assert live.job.state is JobState.RUNNING
                back = await resume_all(second.address, join_replies)
                for worker in back:
                    view = (await worker.join_reply()).view
                    assert view.generation == join_reply.view.generation
                    assert view.trees == join_reply.view.trees
                for worker in back:
                    await worker.send(leave=pb.Leave())
                async with asyncio.timeout(60):
                    while second.membership.live_job("train") is not None:
                        await asyncio.sleep(0.01)
                for worker in (*workers, *back):
                    await worker.close()
            assert sum(fake.tables().values()) == len(HOSTS)

    run(scenario())


def test_session_job_ends_when_its_workers_do_not_come_back(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake, reconnect_grace_s=60.0)
            async with serving(config) as first:
                workers = await join_all(first.address, 2)
                for worker in workers:
                    await worker.join_reply()
                    await worker.close()
            async with serving(dataclasses.replace(config, resume_grace_s=0.3)) as second:
                while second.membership.live_job("train") is not None:
                    await second.links["s1"].apply()
            assert sum(fake.tables().values()) == len(HOSTS)

    run(scenario())


def test_more_workers_than_one_switch_takes(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            workers = [
                await FakeWorker(
                    server.address,
                    number,
                    33,
                    path=pb.SWITCH,
                    ingress_port=number + 1,
                    mac=f"02:00:00:00:00:{number + 1:02x}",
                ).join()
                for number in range(33)
            ]
            for worker in workers:
                status, text = await worker.refusal()
                assert status is StatusCode.RESOURCE_EXHAUSTED
                assert "at switch s1, which takes at most 32 of them" in text
                await worker.close()

    run(scenario())
