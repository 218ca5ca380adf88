# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Groups at a server's switch: who may be in one, and what stations are told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from controller_fixtures import command, run
from fake_station import FakeStation, stations, transfer_controller
from switchfold.controller.api.operator_api import schedule_pb2
from switchfold.controller.cli.schedule.text import group_rows
from switchfold.controller.transfers.job_transfers import JobTransfers
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until

__all__ = ["command"]
PUSHERS = range(4)
WHOLE = {"batch_max": len(PUSHERS), "batch_wait_s": 3600.0, "grant_wait_s": 7200.0}
"""A batch has one update of each pusher."""
TRANSFERS = {**WHOLE, "server_wait_s": 7200.0, "lease_s": 3600.0}


async def offer(job: JobTransfers, server: FakeStation, workers: Sequence[int]) -> None:
    """Let a server say whose updates its switch can add up, and wait until that is known."""
    await server.send(switch_members=pb.SwitchMembers(worker_ids=workers))
    known = job.flow.groups._switch_members
    await until(lambda: known.get(0) == frozenset(workers))


async def push_all(workers: Sequence[FakeStation], **fields: Any) -> list[pb.TransferGranted]:
    for worker in workers:
        await worker.push(worker.first_id, **({"sum_key": 1} | fields))
    return [await worker.granted() for worker in workers]


def test_members_send_at_one_rate_and_the_server_hears_of_the_group(tmp_path: Path):
    """Worker 1 is elsewhere: three are added, and it follows them."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, (100,) * 6, transfers=TRANSFERS) as controller,
            stations(controller.address, len(PUSHERS)) as (server, workers),
        ):
            job = controller.transfers.job("train")
            await offer(job, server, [0, 2, 3])
            grants = await push_all(workers)
            hops = [grant.hop if grant.HasField("hop") else None for grant in grants]
            assert hops[1] is None
            found = {(hop.kind, hop.group_id, hop.num_members) for hop in hops if hop is not None}
            assert len(found) == 1
            kind, group_id, num_members = found.pop()
            assert (kind, num_members) == (pb.GroupHop.SWITCH, 3)
            ends = [grant.spans[-1].end_s - grant.spans[0].start_s for grant in grants]
            assert max(ends) < 1.01  # each alone takes 1 s
            assert [grant.sequence for grant in grants] == [0, 3, 1, 2]
            told = await server.receive()
            assert told.HasField("switch_group"), told
            group = told.switch_group
            members = [(each.worker_id, each.transfer_id) for each in group.members]
            assert members == [(n, workers[n].first_id) for n in (0, 2, 3)]
            assert (group.group_id, group.start_s) == (group_id, 0.0)
            assert group.gather_s == 0.5
            places = [await server.expected() for _ in PUSHERS]
            assert [place.worker_id for place in places] == [0, 2, 3, 1]
            (shown,) = job.flow.groups.shown
            assert (shown.aggregator, shown.host) == (None, "h1")
            # The sum brings three at once; the server applies them in their places.
            for number in (0, 2, 3, 1):
                await server.deliver(number, workers[number].first_id)
            await until(lambda: all(job.workers[n].counts.commits == 1 for n in PUSHERS))
            assert not shown.is_open

    run(scenario())


def test_without_a_word_of_the_server_and_for_single_updates_there_are_no_groups(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, (100,) * 6, transfers=TRANSFERS) as controller,
            stations(controller.address, len(PUSHERS)) as (server, workers),
        ):
            job = controller.transfers.job("train")
            await offer(job, server, [])
            await workers[0].push(workers[0].first_id, sum_key=1)
            assert not (await workers[0].granted()).HasField("hop")  # at once
            await offer(job, server, [0, 1, 2, 3])
            for worker in workers[1:]:
                await worker.push(worker.first_id, sum_key=0)
            await workers[0].push(workers[0].first_id + 1, sum_key=0)
            for worker in workers:
                assert not (await worker.granted()).HasField("hop")

    run(scenario())


def test_a_new_process_of_the_server_has_no_groups_until_it_tells(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, (100,) * 6, transfers=TRANSFERS) as controller,
            stations(controller.address, len(PUSHERS)) as (server, workers),
        ):
            job = controller.transfers.job("train")
            await offer(job, server, [0, 1, 2, 3])
            assert job.flow.groups.places().switches == {
                "switch of server 0": frozenset({"h2", "h3", "h4", "h5"})
            }
            await server.close()
            await until(lambda: not job.servers[0].is_attached)
            assert job.flow.groups.places().switches == {}
            again = FakeStation(controller.address, Role.SERVER, identity=b"x" * 16)
            await again.register()
            assert job.flow.groups.places().switches == {}
            await again.close()
            assert len(workers) == len(PUSHERS)

    run(scenario())


def test_a_member_that_left_its_group_counts_and_others_have_groups_again(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, (100,) * 6, transfers=TRANSFERS) as controller,
            stations(controller.address, len(PUSHERS)) as (server, workers),
        ):
            job = controller.transfers.job("train")
            await offer(job, server, [*PUSHERS])
            grants = await push_all(workers)
            group_id = grants[0].hop.group_id
            for worker, grant in zip(workers, grants, strict=True):
                left = pb.GroupLeft(group_id=group_id, transfer_id=grant.transfer_id)
                await worker.send(left=left)
            await until(lambda: job.flow.groups.counts.left == len(PUSHERS))
            for number in PUSHERS:
                await server.deliver(number, workers[number].first_id)
            await until(lambda: job.workers[3].counts.commits == 1)
            for worker in workers:
                worker.first_id += 1
            grants = await push_all(workers)
            assert all(grant.hop.kind == pb.GroupHop.SWITCH for grant in grants)

    run(scenario())


def test_reports_name_the_switch_in_place_of_an_aggregator():
    group = schedule_pb2.ScheduledGroup(
        group_id=3, is_switch=True, host="h1", worker_ids=[0, 2], is_open=True, end_s=1.0
    )
    (row,) = group_rows(schedule_pb2.ScheduleReport(groups=[group]))
    assert row == (3, "switch of h1", 0, "0 2", "", "+0.0 .. +1.0 s", "open")
