# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: updates that are late, withdrawn, refused or direct, and servers' versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller_fixtures import run
from fake_station import stations, transfer_controller
from switchfold.controller.cli.schedule.text import head_lines
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.job_transfers import JobTransfers
from switchfold.controller.transfers.schedule_service import schedule_report
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from time_bound import until


def job_of(controller: ControllerServer) -> JobTransfers:
    return controller.transfers.job("train")


def test_overdue_update_is_skipped_and_counts_when_it_comes(tmp_path: Path):
    async def scenario() -> None:
        options = {"overdue_ratio": 1.0, "overdue_least_s": 0.2}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            await worker.push(worker.first_id, size_bytes=1000)
            await worker.granted()
            assert (await server.expected()).sequence == 0
            assert await server.skipped() == 0
            counts = job_of(controller).workers[0].counts
            assert (counts.overdue, counts.withdrawn) == (1, 1)
            for _ in range(2):
                await server.deliver(0, worker.first_id)
            await server.send(committed=pb.UpdatesCommitted(version=1))
            place = job_of(controller).servers[0]
            await until(lambda: place.reported_version == 1)
            assert counts.ungranted == 1
            assert job_of(controller).flow.schedule.version(place) + place.version_shift == 1

    run(scenario())


def test_withdrawn_transfers(tmp_path: Path):
    """Of a request that waits, the server never hears; of a granted one, it waits no longer."""

    async def scenario() -> None:
        options = {"batch_wait_s": 3600.0}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 2) as (server, (one, other)),
        ):
            await one.push(one.first_id)
            await one.granted()
            await other.push(other.first_id)
            withdrawn = pb.TransferWithdrawn(transfer_id=other.first_id, is_sent_ungranted=True)
            for _ in range(2):
                await other.send(withdrawn=withdrawn)
            await other.push(other.first_id + 1)
            job = job_of(controller)
            await until(lambda: other.first_id + 1 in job.workers[1].records)
            assert job.workers[1].counts.withdrawn == 1
            await one.send(withdrawn=pb.TransferWithdrawn(transfer_id=one.first_id))
            assert (await server.expected()).worker_id == 0
            assert await server.skipped() == 0
            assert (await other.granted()).sequence == 1, "no grant is open: it is due at once"

    run(scenario())


def test_update_that_the_server_refuses_is_skipped(tmp_path: Path):
    """What has arrived behind it is applied, and the version does not count it."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, (worker, other)),
        ):
            for each in (worker, other):
                await each.push(each.first_id)
                await each.granted()
            await server.deliver(1, other.first_id)
            await server.deliver(0, worker.first_id, is_refused=True)
            counts = {n: place.counts for n, place in job_of(controller).workers.items()}
            await until(lambda: counts[1].commits == 1)
            await worker.push(worker.first_id + 1)
            grant = await worker.granted()
            assert (grant.sequence, grant.delay) == (2, 1)
            assert (counts[0].refused, counts[0].commits, counts[0].grants) == (1, 0, 2)

    run(scenario())


def test_server_hears_when_an_update_may_begin(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, workers),
        ):
            for worker in workers:
                await worker.push(worker.first_id, size_bytes=12_500_000_000)
                await worker.granted()
            begins_s = [(await server.expected()).begins_s for _ in workers]
            assert begins_s[0] == 0.0
            assert 900 < begins_s[1] <= 1000, "the first one takes 1000 s"

    run(scenario())


def test_workers_whose_updates_come_too_early_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Each update counts once, however often its server reports it; the log has it once."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, (worker, other)),
        ):
            for number in range(2):
                await worker.push(worker.first_id + number)
                await worker.granted()
                for _ in range(2):
                    await server.deliver(0, worker.first_id + number, is_early=True)
            await other.push(other.first_id)
            await other.granted()
            await server.deliver(1, other.first_id)
            counts = {n: place.counts for n, place in job_of(controller).workers.items()}
            await until(lambda: counts[1].commits == 1)
            assert [counts[number].early for number in range(2)] == [2, 0]
            assert caplog.text.count("long before its granted time") == 1
            report = schedule_report(job_of(controller))
            assert [each.early for each in report.workers] == [2, 0]
            assert "  came long before their granted times: 2 of worker 0" in head_lines(report)

    run(scenario())


@pytest.mark.parametrize("is_first", [True, False])
def test_update_that_becomes_too_old_in_its_place(tmp_path: Path, is_first: bool):
    """The server has reported it as there, and now refuses it: the version is one less."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, workers),
        ):
            for worker in workers:
                await worker.push(worker.first_id)
                await worker.granted()
            late = 0 if is_first else 1
            for is_refused in (False, True, True):
                await server.deliver(late, workers[late].first_id, is_refused=is_refused)
            await server.deliver(1 - late, workers[1 - late].first_id)
            job = job_of(controller)
            await until(lambda: job.workers[1 - late].counts.commits == 1)
            counts = job.workers[late].counts
            assert (counts.commits, counts.refused) == (0, 1)
            place = job.servers[0]
            assert job.flow.schedule.version(place) + place.version_shift == 1

    run(scenario())


def test_updates_that_nobody_asked_for_count_once(tmp_path: Path):
    """Those of workers that have never registered have the number 0, and all count."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            for transfer_id in (5, 5, 0, 0, 0):
                await server.deliver(9, transfer_id, is_granted=False)
            await server.send(committed=pb.UpdatesCommitted(version=1))
            place = job_of(controller).servers[0]
            await until(lambda: place.reported_version == 1)
            assert job_of(controller).flow.schedule.version(place) + place.version_shift == 4

    run(scenario())


def test_direct_update_ends_its_grant(tmp_path: Path):
    """The worker had no answer in time, and the grant was on its way."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            await worker.push(worker.first_id)
            assert (await server.expected()).sequence == 0
            await server.deliver(0, worker.first_id, is_granted=False)
            assert await server.skipped() == 0
            counts = job_of(controller).workers[0].counts
            assert (counts.withdrawn, counts.ungranted, counts.commits) == (1, 1, 0)

    run(scenario())


def test_version_counted_twice_is_corrected_by_the_servers_last_word(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            place = job_of(controller).servers[0]
            await server.send(committed=pb.UpdatesCommitted(version=8))
            await server.deliver(7, 1, is_granted=False)  # was part of that already
            await server.send(committed=pb.UpdatesCommitted(version=8))
            schedule = job_of(controller).flow.schedule
            await until(
                lambda: (
                    schedule.version(place) + place.version_shift == 9
                    and place.reported_version == 8
                )
            )
            await server.send(heartbeat=pb.Heartbeat())
            await until(lambda: schedule.version(place) + place.version_shift == 8)

    run(scenario())
