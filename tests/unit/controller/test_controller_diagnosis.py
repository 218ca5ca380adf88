# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How the controller finds dead workers, hosts and switches from reports of missing progress."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controller_fixtures import run, running_controller
from fake_member import FakeMember, close_all, start_members
from switchfold.controller.jobs.retreat import FIRST_S, LONGEST_S, Retreat
from switchfold.hostlib.control.session_api import session_pb2 as pb


@pytest.fixture(autouse=True)
def reports_stay_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long this process is held up, reports count together, and switches answer in time."""
    for name in ("stalls.WINDOW_S", "stalls.STILL_S", "diagnosis.ANSWER_S", "diagnosis.MUTE_S"):
        monkeypatch.setattr(f"switchfold.controller.jobs.{name}", 60.0)


async def report(member: FakeMember, *missing: int, silent_s: float = 0.0) -> None:
    generation = member.view.generation
    stalled = pb.Stalled(generation=generation, missing_workers=missing, silent_s=silent_s)
    await member.send(stalled=stalled)


async def report_until_ended(members: list[FakeMember], cut: int, silent_s: float) -> None:
    """Report as workers do, again and again, until the one that is cut off has been told."""
    while not members[cut].ended:
        for member in members:
            if member is not members[cut]:
                await report(member, cut)
        await report(members[cut], silent_s=silent_s)
        await asyncio.sleep(0.2)


def test_worker_cut_off_from_its_switch_is_evicted_with_its_link_named(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 3)
            await report_until_ended(members, 1, silent_s=1.1)
            for member in (members[0], members[2]):
                await member.until_members(0, 2)
                assert len(member.proposals) == 1
                assert member.view.trees, "the switch works"
            for words in ("cut off", "switch s1", "port 2", "h2 (10.0.0.2)"):
                assert words in members[1].ended
            await close_all(*members)

    run(scenario())


def test_worker_that_a_job_cannot_do_without_is_awaited_until_no_route_s(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, no_route_s=3.0) as (server, _):
            members = await start_members(server.address, 3, min_workers=3)
            live = server.membership.live_job("train")
            assert live is not None
            for silent_s in (1.1, 2.1):
                await report(members[0], 1)
                await report(members[2], 1)
                await report(members[1], silent_s=silent_s)
                await members[1].until_settled(
                    lambda s=silent_s: live.stalls.silent_s({1}) == s, "the report is there"
                )
                assert not live.has_ended, "a burst of loss may last so long"
            await report_until_ended(members, 1, silent_s=3.1)
            for member in members:
                await member.until(lambda member=member: member.ended)
            assert "cut off: switch s1 answers other workers" in members[1].ended
            await close_all(*members)

    run(scenario())


def test_switch_that_answers_nobody_is_left_at_once(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            for member in members:
                await report(member, silent_s=1.1)
            for member in members:
                await member.until(lambda member=member: member.commits)
                assert not member.view.trees
                assert "switch s1 answers no worker" in member.proposals[0].reason
            live = server.membership.live_job("train")
            assert live is not None
            now_s = asyncio.get_running_loop().time()
            assert live.retreat.switches(now_s) == {"s1"}, "sharing slots does not bring it back"
            await close_all(*members)

    run(scenario())


def test_job_without_a_route_ends_with_the_switch_named(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, no_route_s=60.0) as (server, _):
            members = await start_members(server.address, 2)
            for member in members:
                await report(member, silent_s=1.1)
            for member in members:
                await member.until(lambda member=member: member.commits)
            live = server.membership.live_job("train")
            assert live is not None
            live.stalls._since_s -= 60.0  # as if reports had come for so long
            while not all(member.ended for member in members):
                for worker_id, member in enumerate(members):
                    if not member.ended:
                        await report(member, 1 - worker_id)
                await asyncio.sleep(0.05)
            for member in members:
                assert "switch s1 answers no worker" in member.ended
                assert "no other route" in member.ended
            await close_all(*members)

    run(scenario())


def test_host_that_no_other_reaches_is_evicted(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 3, path=pb.HOST)
            await report(members[1], 2)
            await report(members[0], 1)
            await report(members[2], 1)
            for member in (members[0], members[2]):
                await member.until_members(0, 2)
                assert "no other worker reaches host h2" in member.proposals[0].reason
            await close_all(*members)

    run(scenario())


def test_answers_of_a_switch_are_awaited_before_it_is_judged(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            for silent_s in (0.1, 0.0):
                for member in members:
                    await report(member, silent_s=silent_s)
            for member in members:
                await member.until(lambda member=member: member.commits)
                assert [p.reason for p in member.proposals] == ["no worker has progress"]
            await close_all(*members)

    run(scenario())


def test_stall_in_an_older_view_does_not_count_against_the_new_switches(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 2)
            for member in members:
                await report(member, silent_s=1.1)
            for member in members:
                await member.until(lambda member=member: member.commits)
                assert not member.view.trees
                member.is_slow = True
            older = members[0].view.generation
            server.membership.replan("the switch is back")
            for member in members:
                await member.until(lambda member=member: len(member.commits) == 2)
                assert member.view.trees
            for worker_id, member in enumerate(members):
                await member.send(
                    stalled=pb.Stalled(generation=older, missing_workers=[1 - worker_id])
                )
            for member in members:
                await member.until(lambda member=member: len(member.commits) == 3)
                assert member.proposals[-1].reason == "no worker has progress"
                assert member.view.trees, "the switch is not left again"
            await close_all(*members)

    run(scenario())


def test_workers_that_wait_in_two_views_get_a_third_one(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = await start_members(server.address, 3)
            older = members[1].view.generation
            members[1].is_slow = True
            server.membership.replan("slots are shared again")
            for member in members:
                await member.until(lambda member=member: member.commits)
            for member in (members[0], members[2]):
                await report(member, 1)
            stalled = pb.Stalled(generation=older, missing_workers=[0, 2], silent_s=1.1)
            await members[1].send(stalled=stalled)
            for member in members:
                await member.until(lambda member=member: len(member.commits) == 2)
                assert "the last view or the one before" in member.proposals[-1].reason
            await close_all(*members)

    run(scenario())


def test_tables_are_compared_when_workers_hear_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("switchfold.controller.jobs.diagnosis.CHECK_S", 60.0)

    async def scenario() -> None:
        async with running_controller(tmp_path, reconcile_interval_s=600.0) as (server, fake):
            members = await start_members(server.address, 2)
            entries = dict(fake.entities)
            fake.entities.clear()
            await report(members[0], silent_s=0.1)
            for member in members:
                await member.until(lambda member=member: member.commits)
                assert "without its tables" in member.proposals[0].reason
            assert fake.entities.keys() != set()
            assert len(fake.entities) >= len(entries)
            await close_all(*members)

    run(scenario())


def test_retreats_become_longer_and_end_with_the_switch_s_return():
    retreat = Retreat()
    assert retreat.begin(["s1"], 0.0) == FIRST_S
    assert retreat.begin(["s1"], 1.0) == 2 * FIRST_S
    assert retreat.is_on(2 * FIRST_S)
    assert not retreat.is_on(2 * FIRST_S + 1.0)
    now_s = 2 * FIRST_S + 1.0
    pauses: list[float] = []
    for _ in range(6):
        pauses.append(retreat.begin(["s1", "s2"], now_s))
        now_s += pauses[-1]
        assert not retreat.is_on(now_s)
    assert max(pauses) == pauses[-1] == LONGEST_S
    retreat.begin(["s1"], now_s)
    assert retreat.end("s1")
    assert not retreat.end("s1")
    assert not retreat.is_on(now_s)
