# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: broken streams, stations that are lost or replaced, another controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from grpc import StatusCode

from controller_fixtures import run
from fake_station import UPDATE_BYTES, FakeStation, stations, transfer_controller
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.job_transfers import JobTransfers
from switchfold.controller.transfers.live_station import LiveStation
from switchfold.controller.transfers.transfer_record import TransferState
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until


def job_of(controller: ControllerServer) -> JobTransfers:
    return controller.transfers.job("train")


def worker_station(controller: ControllerServer, worker_id: int = 0) -> LiveStation:
    station = job_of(controller).workers[worker_id].station
    assert station is not None
    return station


def server_station(controller: ControllerServer, server_id: int = 0) -> LiveStation:
    station = job_of(controller).servers[server_id].station
    assert station is not None
    return station


async def broken(station: FakeStation, live: LiveStation) -> None:
    """Break a connection, and wait until the controller has noticed."""
    await station.close()
    await until(lambda: not live.is_attached)


def broken_batch(_now_s: float) -> None:
    raise ZeroDivisionError


def test_worker_that_comes_back_repeats_without_harm(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            first = worker.first_id
            await worker.push(first)
            grant = await worker.granted()
            await broken(worker, worker_station(controller))
            again = FakeStation(controller.address, Role.WORKER)
            assert (await again.register()).next_transfer_id == first + 1
            await again.push(first)
            repeated = await again.granted()
            assert (repeated.transfer_id, repeated.sequence) == (first, grant.sequence)
            moved = sum((s.end_s - s.start_s) * s.rate_bits_per_s / 8 for s in repeated.spans)
            assert moved == pytest.approx(UPDATE_BYTES)
            assert repeated.spans[0].start_s >= 0
            assert (await server.expected()).sequence == 0
            for _ in range(2):
                await server.deliver(0, first)
            await again.push(first + 1)
            assert (await again.granted()).sequence == 1
            assert (await server.expected()).sequence == 1, "nothing was expected or skipped twice"
            counts = job_of(controller).workers[0].counts
            assert (counts.pushes, counts.grants, counts.commits) == (2, 2, 1)
            place = job_of(controller).servers[0]
            assert job_of(controller).flow.schedule.version(place) + place.version_shift == 1
            await again.close()

    run(scenario())


def test_lost_worker_holds_nobody_up(tmp_path: Path):
    """After its grace its grants are withdrawn; what has arrived behind them is applied."""

    async def scenario() -> None:
        options = {"reconnect_grace_s": 0.2}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 2) as (server, (gone, good)),
        ):
            await gone.push(gone.first_id)
            await gone.granted()
            await good.push(good.first_id)
            assert (await good.granted()).sequence == 1
            await server.expected(), await server.expected()
            await server.deliver(1, good.first_id)
            record = job_of(controller).workers[1].records[good.first_id]
            await until(lambda: record.state is TransferState.ARRIVED)
            await broken(gone, worker_station(controller))
            assert await server.skipped() == 0
            assert record.state is TransferState.COMMITTED
            assert job_of(controller).workers[0].counts.withdrawn == 1
            assert job_of(controller).workers[0].station is None

    run(scenario())


def test_silent_worker_is_told_that_it_is_lost(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (_, (worker,)),
        ):
            station = worker_station(controller)
            station._lease_s = 0.2  # pyright: ignore[reportPrivateUsage]
            station.renew()
            code, details = await worker.refusal()
            assert code is StatusCode.ABORTED
            assert "worker 0 of job 'train' was silent for" in details

    run(scenario())


def test_another_process_takes_the_place_of_one_whose_stream_broke(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            await worker.push(worker.first_id)
            await worker.granted()
            assert (await server.expected()).sequence == 0
            await broken(worker, worker_station(controller))
            heir = FakeStation(controller.address, Role.WORKER, identity=b"n" * 16)
            assert (await heir.register()).next_transfer_id == worker.first_id + 1
            assert await server.skipped() == 0
            await heir.push(heir.first_id)
            assert (await heir.granted()).sequence == 1
            await heir.close()

    run(scenario())


def test_server_that_comes_back_hears_of_its_open_places(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 4) as (server, workers),
        ):
            ids = [worker.first_id for worker in workers]
            for worker in workers:  # one after the other, so that places are those of workers
                await worker.push(worker.first_id)
                await worker.granted()
            for number, worker_id in ((0, 0), (2, 2)):
                await server.deliver(worker_id, ids[number])
            records = [job_of(controller).workers[n].records[ids[n]] for n in range(4)]
            await until(lambda: records[2].state is TransferState.ARRIVED)
            await broken(server, server_station(controller))
            await workers[3].send(withdrawn=pb.TransferWithdrawn(transfer_id=ids[3]))
            await until(lambda: records[3].state is TransferState.WITHDRAWN)
            again = FakeStation(controller.address, Role.SERVER, version=1, next_sequence=4)
            assert (await again.register()).next_sequence == 1
            expected = await again.expected()
            assert (expected.sequence, expected.worker_id) == (1, 1)
            assert await again.skipped() == 3, "place 2 has arrived: the server has it"
            await again.close()

    run(scenario())


def test_restarted_server_skips_places_before(tmp_path: Path):
    """Its version may be lower; an update on a model that nobody has any more is dropped."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 3, version=10) as (server, workers),
        ):
            await workers[0].push(workers[0].first_id, version=10)
            assert (await workers[0].granted()).sequence == 0
            await broken(server, server_station(controller))
            fresh = FakeStation(controller.address, Role.SERVER, version=4, identity=b"f" * 16)
            assert (await fresh.register()).next_sequence == 1
            await workers[1].push(workers[1].first_id, version=9)
            dropped = await workers[1].dropped()
            assert dropped.reason == "its server has an older model"
            await workers[2].push(workers[2].first_id, version=3)
            grant = await workers[2].granted()
            assert (grant.sequence, grant.delay) == (1, 1)
            assert (await fresh.expected()).sequence == 1
            await fresh.deliver(0, workers[0].first_id)  # comes after all, and is applied
            counts = job_of(controller).workers[0].counts
            await until(lambda: counts.ungranted == 1)
            assert (counts.withdrawn, counts.commits) == (1, 0)
            await fresh.close()

    run(scenario())


def test_server_on_another_host_gets_other_routes(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, (100, 100, 20)) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            await worker.push(worker.first_id)
            assert (await worker.granted()).spans[-1].end_s == pytest.approx(1.0)
            await broken(server, server_station(controller))
            moved = FakeStation(controller.address, Role.SERVER, host="h3", identity=b"m" * 16)
            await moved.register()
            await worker.push(worker.first_id + 1)
            assert {s.rate_bits_per_s for s in (await worker.granted()).spans} == {20_000_000}
            await moved.close()

    run(scenario())


def test_requests_wait_for_a_server_whose_stream_broke(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            live = server_station(controller)
            await broken(server, live)
            await worker.push(worker.first_id)
            place = job_of(controller).workers[0]
            await until(lambda: worker.first_id in place.records)
            assert place.records[worker.first_id].state is TransferState.PARKED
            again = FakeStation(controller.address, Role.SERVER)
            await again.register()
            assert (await again.expected()).transfer_id == worker.first_id
            await worker.granted()
            await again.close()

    run(scenario())


def test_lost_server_leaves_requests_unanswered(tmp_path: Path):
    """Workers go on without grants; their streams stand."""

    async def scenario() -> None:
        options = {"server_wait_s": 0.2, "grant_wait_s": 0.1, "reconnect_grace_s": 0.1}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            await broken(server, server_station(controller))
            await worker.push(worker.first_id)
            place = job_of(controller).workers[0]
            await until(
                lambda: (
                    worker.first_id in place.records
                    and place.records[worker.first_id].state is TransferState.WITHDRAWN
                )
            )
            assert place.station is not None
            assert place.station.is_attached

    run(scenario())


def test_sequence_goes_on_at_another_controller(tmp_path: Path):
    """Nothing is kept: stations register again, and say what they know."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            await worker.push(worker.first_id)
            await worker.granted()
            earlier_id = worker.first_id
            assert earlier_id > 0
        async with transfer_controller(tmp_path) as controller:
            server = FakeStation(controller.address, Role.SERVER, version=30, next_sequence=17)
            worker = FakeStation(controller.address, Role.WORKER)
            assert (await worker.register()).next_transfer_id > earlier_id + 1_000_000
            await worker.push(earlier_id + 1, version=29)  # the controller before did not answer
            place = job_of(controller).workers[0]
            await until(lambda: earlier_id + 1 in place.records)
            assert (await server.register()).next_sequence == 17
            grant = await worker.granted()
            assert (grant.transfer_id, grant.sequence, grant.delay) == (earlier_id + 1, 17, 1)
            await worker.push(worker.first_id, version=29)
            assert (await worker.granted()).sequence == 18
            await server.deliver(0, earlier_id)  # granted by the controller before
            await until(lambda: place.counts.ungranted == 1)
            assert (await server.expected()).sequence == 17
            for station in (server, worker):
                await station.close()

    run(scenario())


def test_stations_of_a_scheduler_that_failed_have_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
            stations(controller.address, 1, job_name="other") as (_, (other,)),
        ):
            failed = job_of(controller)
            monkeypatch.setattr(failed.flow.schedule, "_decide", broken_batch)
            await worker.push(worker.first_id)
            for station in (server, worker):
                code, details = await station.refusal()
                assert code is StatusCode.UNAVAILABLE
                assert "scheduler of job 'train' failed (ZeroDivisionError" in details
            async with stations(controller.address, 1) as (new_server, (again,)):
                assert job_of(controller) is not failed
                await again.push(worker.first_id)  # it had no answer
                assert (await again.granted()).transfer_id == worker.first_id
                assert (await new_server.expected()).transfer_id == worker.first_id
            await other.push(other.first_id)
            assert (await other.granted()).transfer_id == other.first_id

    run(scenario())
    (told,) = [each for each in caplog.records if "scheduler failed at a batch" in each.message]
    assert told.exc_info is not None
    assert told.exc_info[0] is ZeroDivisionError


def test_stations_hear_that_the_controller_stops(tmp_path: Path):
    async def scenario() -> None:
        async with transfer_controller(tmp_path) as controller:
            server = FakeStation(controller.address, Role.SERVER)
            await server.register()
        code, details = await server.refusal()
        assert code is StatusCode.UNAVAILABLE
        assert "is being stopped; register again later" in details
        await server.close()

    run(scenario())


def test_job_ends_with_its_last_station(tmp_path: Path):
    async def scenario() -> None:
        options = {"reconnect_grace_s": 0.1}
        async with transfer_controller(tmp_path, transfers=options) as controller:
            async with stations(controller.address, 2):
                assert set(controller.transfers.jobs) == {"train"}
            await until(lambda: not controller.transfers.jobs)
            async with stations(controller.address, 1, tau_max=3):
                assert job_of(controller).terms.tau_max == 3, "it is a new job"

    run(scenario())


def test_links_that_operators_take_down_are_not_planned(tmp_path: Path):
    """A granted update keeps its plan; a request without a route waits for one."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, num_switches=2) as controller,
            stations(controller.address, 1, host="h1") as (_, (worker,)),
        ):
            far = FakeStation(controller.address, Role.SERVER, 1, host="h9")
            await far.register()
            await worker.push(worker.first_id, server_id=1)
            assert (await worker.granted()).sequence == 0
            controller.fabric_state.set_link("s1-s2", is_up=False)
            await worker.push(worker.first_id + 1, server_id=1)
            records = job_of(controller).workers[0].records
            await until(lambda: worker.first_id + 1 in records)
            second = records[worker.first_id + 1]
            assert "no route from h1 to server 1" in second.parked_for
            assert records[worker.first_id].state is TransferState.GRANTED
            controller.fabric_state.set_link("s1-s2", is_up=True)
            assert (await worker.granted()).sequence == 1
            await far.close()

    run(scenario())
