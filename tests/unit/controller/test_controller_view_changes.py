# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of a job's view by the controller: losses, joins, departures, and their races."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from controller_fixtures import run, running_controller, silence
from fake_member import FakeMember, close_all, start_members
from switchfold.controller.views.view_change import Limits
from switchfold.hostlib.control.session_api import session_pb2 as pb


@pytest.fixture
def waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that do not answer yet are awaited, however long this process is held up."""
    limits = partial(Limits, abort_answer_s=60.0, graceful_answer_s=60.0)
    monkeypatch.setattr("switchfold.controller.jobs.membership.Limits", limits)


def test_loss_of_a_worker_is_an_abort_for_the_others(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            members = await start_members(server.address, 4)
            first = members[0].view.generation
            entries = sum(fake.tables().values())
            for member, position in zip(members, (3, 5, 4, 5), strict=True):
                member.position = position
            await members[1].close()
            for member in (members[0], members[2], members[3]):
                await member.until_members(0, 2, 3)
                commit = member.commits[0]
                assert [proposal.is_abort for proposal in member.proposals] == [True]
                assert "worker 1 lost (connection broke)" in member.proposals[0].reason
                assert (commit.boundary, commit.source_worker) == (5, 3)
                assert commit.view.generation > first
                assert commit.view.child_id == member.join_request.worker_id
            await members[0].until_settled(
                lambda: sum(fake.tables().values()) == entries - 2, "old entries are gone"
            )
            await close_all(*members)

    run(scenario())


def test_silent_worker_is_lost_when_its_lease_is_over(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            silence(server, members[1])
            await members[0].until_members(0)
            assert "no heartbeat" in members[0].proposals[0].reason
            await members[1].until(lambda: members[1].ended)
            assert "join again" in members[1].ended
            await close_all(*members)

    run(scenario())


def test_two_losses_at_once_are_one_change(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            members = await start_members(server.address, 4)
            live = server.membership.live_job("train")
            assert live is not None
            lost = [live.leases[worker_id] for worker_id in (1, 2)]
            await close_all(members[1], members[2])
            await members[0].until_settled(
                lambda: not any(lease.is_attached for lease in lost), "both connections are broken"
            )
            for lease in lost:  # both graces end at once; timers could come late and apart
                server.membership._lease_expired(live, lease)  # pyright: ignore[reportPrivateUsage]
            for member in (members[0], members[3]):
                await member.until_members(0, 3)
                assert len(member.proposals) == 1
            await close_all(*members)

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_loss_during_an_abort_starts_the_next(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 4)
            members[2].is_mute = True
            await members[1].close()
            await members[2].until(lambda: members[2].proposals)
            await members[2].close()
            for member in (members[0], members[3]):
                await member.until_members(0, 3)
                assert len(member.proposals) == 2
                assert len(member.commits) == 1, "the first abort was never committed"
            await close_all(*members)

    run(scenario())


def test_member_that_does_not_answer_an_abort_is_lost(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 3)
            members[2].is_mute = True
            began_s = time.monotonic()
            await members[1].close()
            await members[0].until_members(0)
            assert time.monotonic() - began_s >= 1.0
            await members[2].until(lambda: members[2].ended)
            assert "no answer for 1 s" in members[2].ended
            await close_all(*members)

    run(scenario())


def test_worker_joins_at_a_tensor_boundary(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            for use in (1, 2):
                for member in members:
                    await member.send(barrier=pb.Barrier(name="epoch", use=use))
            for member, position in zip(members, (7, 8), strict=True):
                await member.until(lambda member=member: len(member.released) == 2)
                member.position = position
                member.is_slow = True
            newcomer = await FakeMember(server.address, 2, 0, is_joining=True).join()
            for member in members:
                await member.until_members(0, 1, 2)
                assert not member.proposals[0].is_abort
                assert member.commits[0].boundary == 8
            await members[0].enter()
            await members[0].send(heartbeat=pb.Heartbeat())
            assert newcomer.reply is None, "one worker still runs older tensors"
            await members[1].enter()
            await newcomer.until(lambda: newcomer.reply)
            join_reply = newcomer.first_join_reply
            assert join_reply.boundary == 8
            assert [(b.name, b.use) for b in join_reply.barriers_released] == [("epoch", 2)]
            for member in (*members, newcomer):
                await member.send(barrier=pb.Barrier(name="epoch", use=3))
            await newcomer.until(lambda: ("epoch", 3) in newcomer.released)
            await close_all(*members, newcomer)

    run(scenario())


def test_lost_worker_comes_back_under_its_old_id(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 2)
            await members[1].close()
            await members[0].until_members(0)
            resume = members[1].resume(members[0].view.generation)
            late = await FakeMember(server.address, 1, resume=resume).join()
            await late.until(lambda: late.ended)
            assert "goes on without worker 1" in late.ended
            plain = await FakeMember(server.address, 1).join()
            await plain.until(lambda: plain.ended)
            assert "join with is_joining" in plain.ended
            back = await FakeMember(server.address, 1, is_joining=True).join()
            await back.until(lambda: back.reply)
            assert members[0].members == back.members == [0, 1]
            await close_all(*members, late, plain, back)

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_join_during_an_abort_is_part_of_the_next_view(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 3)
            members[0].is_mute = True
            await members[1].close()
            await members[0].until(lambda: members[0].proposals)
            newcomer = await FakeMember(server.address, 3, 0, is_joining=True).join()
            members[0].is_mute = False
            await members[0].answer()
            await newcomer.until(lambda: newcomer.reply)
            for member in (members[0], members[2], newcomer):
                assert member.members == [0, 2, 3]
            await close_all(*members, newcomer)

    run(scenario())


def test_newcomer_that_goes_away_before_its_boundary(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            for member in members:
                member.is_slow = True
            newcomer = await FakeMember(server.address, 2, 0, is_joining=True).join()
            await members[0].until_members(0, 1, 2)
            for member in members:
                member.is_slow = False
            await newcomer.close()
            for member in members:
                await member.until_members(0, 1)
                assert member.proposals[-1].is_abort, "others wait for it in the new view"
            await close_all(*members, newcomer)

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_loss_beats_a_graceful_change(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 3)
            members[0].is_mute = True
            newcomer = await FakeMember(server.address, 3, 0, is_joining=True).join()
            await members[0].until(lambda: members[0].proposals)
            members[0].is_mute = False
            await members[2].close()
            await members[0].until(lambda: members[0].commits)
            assert [p.is_abort for p in members[0].proposals] == [False, True]
            await newcomer.until(lambda: newcomer.reply)
            assert members[0].members == newcomer.members == [0, 1, 3]
            await close_all(*members, newcomer)

    run(scenario())


def test_graceful_change_without_an_answer_becomes_an_abort(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            members[1].is_mute = True
            began_s = time.monotonic()
            newcomer = await FakeMember(server.address, 2, 0, is_joining=True).join()
            await members[0].until_members(0, 2)
            assert time.monotonic() - began_s >= 3.0
            assert [p.is_abort for p in members[0].proposals][:2] == [False, True]
            await close_all(*members, newcomer)

    run(scenario())


@pytest.mark.parametrize("begun", [6, 7])
def test_leave_lets_the_others_finish(tmp_path: Path, begun: int):
    """Tensors with the leaving worker run to their end; tensors begun without it are redone."""

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 3)
            members[0].position, members[1].position = 5, begun
            await members[2].send(leave=pb.Leave(position=6))
            for member in members[:2]:
                await member.until_members(0, 1)
                is_late = begun > 6
                assert [p.is_abort for p in member.proposals] == [False, True][: 1 + is_late]
                assert member.commits[0].boundary == begun
            await members[0].send(leave=pb.Leave(position=9))
            await members[1].until_members(1)
            await members[1].send(leave=pb.Leave(position=9))
            await members[1].until(lambda: members[1].ended)
            assert server.membership.live_job("train") is None
            await close_all(*members)

    run(scenario())


def test_leave_of_a_worker_that_gave_tensors_up_is_an_abort(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 3)
            await members[2].send(leave=pb.Leave())
            for member in members[:2]:
                await member.until_members(0, 1)
                assert [p.is_abort for p in member.proposals] == [True]
            await close_all(*members)

    run(scenario())


def test_job_ends_below_its_least_number_of_workers(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 3, min_workers=2)
            await members[0].close()
            await members[1].until_members(1, 2)
            await members[1].close()
            await members[2].until(lambda: members[2].ended)
            assert "fewer than 2 workers" in members[2].ended
            await close_all(*members)

    run(scenario())


def test_clean_leave_below_the_least_number_lets_the_others_finish(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2, min_workers=2)
            await members[0].send(leave=pb.Leave(position=3))
            live = server.membership.live_job("train")
            assert live is not None
            await members[1].until_settled(lambda: live.is_draining, "the job runs out")
            assert not members[1].proposals
            generation = members[1].view.generation
            await members[1].send(stalled=pb.Stalled(generation=generation, missing_workers=[0]))
            await members[1].until(lambda: members[1].ended)
            assert "fewer than 2 workers" in members[1].ended
            await close_all(*members)

    run(scenario())


def test_barrier_does_not_wait_for_a_lost_worker(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 3)
            for member in members[:2]:
                await member.send(barrier=pb.Barrier(name="b", use=1))
            await members[2].close()
            for member in members[:2]:
                await member.until(lambda member=member: member.released == [("b", 1)])
            await close_all(*members)

    run(scenario())


def test_worker_that_was_away_hears_of_what_it_missed(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            members = await start_members(server.address, 2)
            members[1].position = 9
            await members[1].close()
            newcomer = await FakeMember(server.address, 2, 0, is_joining=True).join()
            await members[0].until(lambda: members[0].proposals)
            back = FakeMember(server.address, 1, resume=members[1].resume())
            back.position = 9
            await back.join()
            await back.until(lambda: back.commits)
            assert back.commits[0].boundary == 9
            await newcomer.until(lambda: newcomer.reply)
            await close_all(*members, back, newcomer)

    run(scenario())


def test_worker_that_missed_the_commit_gets_it_again(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            members = await start_members(server.address, 2)
            members[1].is_slow = True
            newcomer = await FakeMember(server.address, 2, 0, is_joining=True).join()
            await members[1].until(lambda: members[1].commits)
            await members[1].close()
            back = await FakeMember(server.address, 1, resume=members[1].resume()).join()
            await back.until(lambda: back.commits)
            await newcomer.until(lambda: newcomer.reply)
            assert newcomer.view.generation == back.view.generation
            await close_all(*members, back, newcomer)

    run(scenario())
