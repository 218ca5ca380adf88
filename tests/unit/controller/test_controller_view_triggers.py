# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Other causes of view changes: restarted switches and controllers, stalled workers, other jobs."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from controller_fixtures import fake_switch, make_config, run, running_controller, serving
from fake_member import FakeMember, close_all, start_members
from switchfold.controller.errors import NoRoomError
from switchfold.controller.jobs.membership import RETURN_S
from switchfold.controller.views.view_change import Limits
from switchfold.hostlib.control.session_api import session_pb2 as pb


@pytest.fixture
def waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that do not answer yet are awaited, however long this process is held up."""
    limits = partial(Limits, abort_answer_s=60.0, graceful_answer_s=60.0)
    monkeypatch.setattr("switchfold.controller.jobs.membership.Limits", limits)


def test_switch_that_restarts_empty_is_an_abort(tmp_path: Path):
    async def scenario() -> None:
        # However long the restart takes, it is the reason of the change.
        async with running_controller(tmp_path, switch_gone_s=600.0) as (server, fake):
            members = await start_members(server.address, 2)
            first = members[0].view.generation
            members[0].position = 4
            port = int(fake.address.rsplit(":", 1)[1])
            await fake.stop()
            fake.restart_empty()
            await fake.start(port)
            for member in members:
                await member.until(lambda member=member: member.commits)
                assert member.commits[0].boundary == 4
                assert member.view.generation > first
                assert "came back without its tables" in member.proposals[0].reason
            await close_all(*members)

    run(scenario())


def test_stall_of_everybody_is_the_path_s_fault(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            for attempt in range(2):
                generation = members[0].view.generation
                stalled = pb.Stalled(generation=generation, missing_workers=[1])
                await members[0].send(stalled=stalled)
                await members[0].send(heartbeat=pb.Heartbeat())
                assert len(members[0].proposals) == attempt, "one alone may wait for the other"
                await members[1].send(stalled=stalled)
                for member in members:
                    await member.until(lambda m=member, n=attempt: len(m.commits) == n + 1)
                    assert member.proposals[-1].is_abort
            assert members[0].commits[0].view.trees
            assert not members[0].view.trees, "the switches did not help: between the hosts"
            await close_all(*members)

    run(scenario())


def test_stall_for_a_worker_that_left_is_an_abort(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            members[0].is_slow = True
            await members[1].send(leave=pb.Leave(position=0))
            await members[0].until(lambda: members[0].commits)
            stalled = pb.Stalled(generation=1, missing_workers=[1])
            await members[0].send(stalled=stalled)
            await members[0].until(lambda: len(members[0].commits) == 2)
            assert [p.is_abort for p in members[0].proposals] == [False, True]
            await close_all(*members)

    run(scenario())


def test_other_job_takes_its_share_and_gives_it_back(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, default_slots=1024) as (server, _):
            members = await start_members(server.address, 2)
            most = members[0].view.trees[0].slot_count
            others = await start_members(server.address, 2, job_name="other")
            await members[0].until(lambda: members[0].commits)
            assert not members[0].proposals[0].is_abort
            fewer = members[0].view.trees[0].slot_count
            assert fewer < most
            for other in others:
                await other.send(leave=pb.Leave(position=0))
            await members[0].until(lambda: members[0].view.trees[0].slot_count > fewer)
            await close_all(*members, *others)

    run(scenario())


def test_replan_keeps_the_members(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            assert server.membership.replan("a link is back") == ["train"]
            await members[0].until(lambda: members[0].commits)
            assert members[0].members == [0, 1]
            assert "a link is back" in members[0].proposals[0].reason
            await close_all(*members)

    run(scenario())


def test_job_without_any_route_ends_in_time(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 3)
            limits = Limits(no_route_s=0.5, retry_s=0.1)
            manager = server.membership._manager  # pyright: ignore[reportPrivateUsage]
            live = manager.live_job("train")
            assert live is not None
            changes, _ = manager._changes[live]  # pyright: ignore[reportPrivateUsage]
            with (
                patch.object(changes, "_limits", limits),
                patch.object(server.views, "plan", side_effect=NoRoomError("nothing is free")),
            ):
                await members[2].close()
                await members[0].until(lambda: members[0].ended)
            assert "no route for its data within 0.5 s: nothing is free" in members[0].ended
            assert not members[0].proposals, "no worker is stopped for a view that cannot be made"
            await close_all(*members)

    run(scenario())


def test_failure_of_a_change_ends_the_job(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=0.1) as (server, _):
            members = await start_members(server.address, 2)
            with patch.object(server.views, "plan", side_effect=RuntimeError("a defect")):
                await members[1].close()
                await members[0].until(lambda: members[0].ended)
            assert "a defect" in members[0].ended
            assert server.membership.live_job("train") is None
            await close_all(*members)

    run(scenario())


def test_newcomer_without_room_gets_an_error(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            with patch.object(server.views, "plan", side_effect=NoRoomError("nothing is free")):
                newcomer = await FakeMember(server.address, 2, 0, is_joining=True).join()
                await newcomer.until(lambda: newcomer.ended)
            assert "nothing is free" in newcomer.ended
            assert not members[0].ended
            await close_all(*members, newcomer)

    run(scenario())


def test_restart_during_a_change_ends_in_an_abort(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            async with serving(config) as first:
                members = await start_members(first.address, 2)
                join_reply = members[0].first_join_reply
                for member in members:
                    member.is_slow = True
                newcomer = await FakeMember(first.address, 2, 0, is_joining=True).join()
                for member in members:
                    await member.until(lambda member=member: member.commits)
                committed = members[0].view.generation
            await close_all(*members, newcomer)
            async with serving(config) as second:
                # One has heard of the commit, the other has not.
                back: list[FakeMember] = []
                for worker_id, generation in enumerate((committed, join_reply.view.generation)):
                    resume = members[worker_id].resume(generation)
                    member = FakeMember(second.address, worker_id, resume=resume)
                    member.position = 2 + worker_id
                    back.append(await member.join())
                    await member.until(lambda member=member: member.reply)
                stalled = pb.Stalled(generation=committed, missing_workers=[2])
                await back[0].until_settled(
                    lambda: not second.membership.live_job("train").leases[2].is_attached,  # pyright: ignore[reportOptionalMemberAccess]
                    "the newcomer is not back",
                )
                await asyncio.sleep(RETURN_S)  # it could still come back
                await back[0].send(stalled=stalled)
                for member in back:
                    await member.until(lambda member=member: member.commits)
                    assert member.proposals[-1].is_abort
                    assert member.members == [0, 1]
                    assert member.commits[0].boundary == 3
                await back[0].until_settled(
                    lambda: len(second.views.placements("s1")) == 1, "only one view is left"
                )
                await close_all(*back)

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_newcomer_that_leaves_before_the_commit_holds_up_nobody(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            members[0].is_mute = True
            newcomer = await FakeMember(server.address, 2, 0, is_joining=True).join()
            await members[0].until(lambda: members[0].proposals)
            members[0].is_mute = False
            await newcomer.close()
            for member in members:
                await member.until_members(0, 1)
                await member.until(lambda member=member: member.commits)
                assert [p.is_abort for p in member.proposals] == [False, False]
            await close_all(*members, newcomer)

    run(scenario())


@pytest.mark.usefixtures("waits_long")
def test_restart_before_the_commit_leaves_the_view_in_use(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            async with serving(config) as first:
                members = await start_members(first.address, 2)
                members[0].is_mute = True
                newcomer = await FakeMember(first.address, 2, 0, is_joining=True).join()
                await members[0].until(lambda: members[0].proposals)
                in_use, proposed = members[0].view, members[0].proposals[0]
                resumes = [member.resume(0, proposed.generation) for member in members]
            await close_all(*members, newcomer)
            async with serving(config) as second:
                assert len(second.views.placements("s1")) == 1
                back = [
                    await FakeMember(second.address, n, resume=resume).join()
                    for n, resume in enumerate(resumes)
                ]
                for member in back:
                    await member.until(lambda member=member: member.reply)
                    assert member.first_join_reply.view.generation == in_use.generation
                # Both hold back tensors for the change that was given up: there is another.
                await back[0].until(lambda: back[0].commits)
                await close_all(*back)

    run(scenario())


def test_newcomer_right_after_a_restart_does_not_end_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # The members are back in time, however busy the machine is.
    monkeypatch.setattr("switchfold.controller.jobs.membership.RETURN_S", 60.0)

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            async with serving(config) as first:
                members = await start_members(first.address, 2)
            await close_all(*members)
            async with serving(config) as second:
                # No worker is back: one joins, another does not set is_joining.
                newcomer = await FakeMember(second.address, 2, 0, is_joining=True).join()
                stranger = await FakeMember(second.address, 3, 4).join()
                await newcomer.until_settled(
                    lambda: 2 in second.membership.live_job("train").leases,  # pyright: ignore[reportOptionalMemberAccess]
                    "the newcomer waits",
                )
                back = [
                    await FakeMember(second.address, n, resume=member.resume()).join()
                    for n, member in enumerate(members)
                ]
                for member in (*back, newcomer):
                    await member.until_members(0, 1, 2)
                await stranger.until(lambda: "ALREADY_EXISTS" in stranger.ended)
                await close_all(*back, newcomer, stranger)

    run(scenario())
