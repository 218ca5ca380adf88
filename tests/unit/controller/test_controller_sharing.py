# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that share a switch while they run: fewer and more slots, host allreduce and back."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from controller_fixtures import run, running_controller
from fake_member import FakeMember
from switchfold.controller.jobs.job import Job, View
from switchfold.controller.views.views import Views
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.slots.wire import NUM_SLOTS

NUM_JOBS = 9
DEADLINE_S = 60.0


def slots(member: FakeMember) -> int:
    return sum(tree.slot_count for tree in member.view.trees)


def test_sessions_of_many_jobs_share_a_switch(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = [
                await FakeMember(server.address, 0, 1, job_name=f"job {number}").join()
                for number in range(NUM_JOBS)
            ]
            for member in members:
                await member.until(lambda member=member: member.reply, DEADLINE_S)
            share = NUM_SLOTS * 7 // 8 // NUM_JOBS
            for member in members:
                await member.until(
                    lambda member=member: share * 7 // 8 <= slots(member) <= share * 9 // 8,
                    DEADLINE_S,
                )
            assert {len(member.view.trees) for member in members} == {1}
            for member in members[2:]:
                await member.send(leave=pb.Leave())
            for member in members[:2]:
                await member.until(lambda member=member: slots(member) == 128, DEADLINE_S)
            for member in members:
                await member.close()

    run(scenario())


def test_slots_that_are_free_late_are_shared_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_jobs = NUM_SLOTS // 128
    looks = 0
    rebalance, keep_counts = Views.rebalance, Views._keep_counts

    def counted_rebalance(views: Views) -> list[Job]:
        nonlocal looks
        looks += 1
        return rebalance(views)

    async def late_counts(views: Views, view: View, name: str) -> None:
        """Keep the slots of a view that is left until the controller has looked for free ones."""
        before = looks
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):  # if it never looks, the slots become free now
                while looks == before:
                    await asyncio.sleep(0.01)
        await keep_counts(views, view, name)

    monkeypatch.setattr(Views, "rebalance", counted_rebalance)
    monkeypatch.setattr(Views, "_keep_counts", late_counts)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            members = [
                await FakeMember(server.address, 0, 1, job_name=f"job {number}").join()
                for number in range(num_jobs)
            ]
            share = NUM_SLOTS * 7 // 8 // num_jobs
            for member in members:
                await member.until(
                    lambda member=member: member.reply and share * 7 // 8 <= slots(member) <= share,
                    DEADLINE_S,
                )
            for member in members:
                await member.close()

    run(scenario())


@pytest.mark.parametrize("peer_port", [4000, 0])
def test_session_without_room_runs_between_the_hosts_until_there_is_some(
    tmp_path: Path, peer_port: int
):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            fields = {"job_name": "large", "slots_wanted": NUM_SLOTS}
            large = await FakeMember(server.address, 0, 1, **fields).join()
            await large.until(lambda: large.reply)
            small = await FakeMember(server.address, 1, 1, worker_id=0, peer_port=peer_port).join()
            if not peer_port:
                await small.until(lambda: small.ended)
                assert "switch s1: 0 of 1024 free, held by large (1024)" in small.ended
                await large.close()
                await small.close()
                return
            await small.until(lambda: small.reply)
            assert not small.view.trees
            assert "held by large (1024)" in small.view.reason
            await large.send(leave=pb.Leave())
            await small.until(lambda: slots(small) == 128)
            assert [commit.boundary for commit in small.commits] == [small.position]
            for member in (large, small):
                await member.close()

    run(scenario())
