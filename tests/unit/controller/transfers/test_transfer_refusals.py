# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: what is refused, with a reason, on the stream of the one who is at fault."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from controller_fixtures import FakeWorker, run
from fake_station import FakeStation, stations, transfer_controller
from switchfold.controller.transfers.live_station import MAX_UNREAD, StationRole
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until

OPEN = 8


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"norm": math.nan}, "TransferRequested.norm is nan"),
        ({"norm": math.inf}, "TransferRequested.norm is inf"),
        ({"norm": -1.0}, "TransferRequested.norm is -1.0"),
        ({"size_bytes": 0}, "TransferRequested.size_bytes is 0"),
        ({"size_bytes": (1 << 40) + 1}, "TransferRequested.size_bytes is 1099511627777"),
        ({"whole_bytes": (1 << 40) + 1}, "TransferRequested.whole_bytes is 1099511627777"),
        ({"size_bytes": 9, "whole_bytes": 8}, "whole_bytes is 8; it must be a whole number from 9"),
    ],
)
def test_request_that_makes_no_sense(tmp_path: Path, fields: dict[str, Any], text: str):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (_, (bad, good)),
        ):
            await bad.push(**({"transfer_id": bad.first_id} | fields))
            code, details = await bad.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert text in details
            await good.push(good.first_id)
            assert (await good.granted()).transfer_id == good.first_id

    run(scenario())


def test_a_refused_request_is_named_and_its_worker_may_come_back(tmp_path: Path):
    async def scenario() -> None:
        options = {"server_wait_s": 0.2, "grant_wait_s": 0.1}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 1) as (server, (bad,)),
        ):
            first_id = bad.first_id
            await bad.push(first_id, version=1000)  # refused when nobody waits any longer
            message = await bad.receive()
            assert message.refused.transfer_id == first_id
            assert "on version 1000 cannot be scheduled" in message.refused.reason
            assert (await bad.refusal())[0] is StatusCode.INVALID_ARGUMENT
            again = FakeStation(controller.address, Role.WORKER, 0)
            await again.register()
            assert again.first_id == first_id + 1
            await again.push(first_id)  # refused at once
            assert (await again.receive()).refused.transfer_id == first_id
            assert (await again.refusal())[0] is StatusCode.INVALID_ARGUMENT
            last = FakeStation(controller.address, Role.WORKER, 0)
            await last.register()
            await last.push(last.first_id)
            assert (await last.granted()).transfer_id == last.first_id
            assert (await server.expected()).transfer_id == last.first_id
            for station in (again, last):
                await station.close()

    run(scenario())


def test_ids_rise(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (_, (worker,)),
        ):
            await worker.push(worker.first_id + 1)
            await worker.granted()
            await worker.push(worker.first_id)
            code, details = await worker.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert f"its id is not above {worker.first_id + 1}, the last one" in details

    run(scenario())


def test_repeated_id_with_another_size(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (_, (worker,)),
        ):
            await worker.push(worker.first_id)
            await worker.granted()
            await worker.push(worker.first_id, size_bytes=1)
            code, details = await worker.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert "was requested before with another server, size, version or norm" in details

    run(scenario())


def test_unknown_server_is_named_once_servers_had_time_to_come(tmp_path: Path):
    async def scenario() -> None:
        options = {"server_wait_s": 0.2, "grant_wait_s": 0.1}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 2) as (_, (early, late)),
        ):
            job = controller.transfers.job("train")
            for worker, is_taken in ((early, True), (late, False)):
                job.flow.began_s = math.inf if is_taken else -math.inf
                await worker.push(worker.first_id, server_id=7)
                code, details = await worker.refusal()
                assert code is StatusCode.INVALID_ARGUMENT
                assert "server 7 is not registered; servers of job 'train': 0." in details
                place = job.workers[worker.request.station_id]
                assert (worker.first_id in place.records) is is_taken

    run(scenario())


def test_version_that_the_server_does_not_reach(tmp_path: Path):
    async def scenario() -> None:
        options = {"server_wait_s": 0.2, "grant_wait_s": 0.1}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 1) as (_, (bad,)),
        ):
            await bad.push(bad.first_id, version=1000)
            code, details = await bad.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert "on version 1000 cannot be scheduled: server 0 has version 0" in details

    run(scenario())


def test_version_that_the_server_reports_later(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (good,)),
        ):
            await good.push(good.first_id, version=3)
            await until(lambda: bool(controller.transfers.job("train").workers[0].records))
            await server.send(committed=pb.UpdatesCommitted(version=3))
            assert (await good.granted()).delay == 0

    run(scenario())


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"host": "h99"}, StatusCode.INVALID_ARGUMENT, "no host 'h99' in the controller's file"),
        ({"identity": b"short"}, StatusCode.INVALID_ARGUMENT, "an identity of 5 bytes"),
        ({"job_name": ""}, StatusCode.INVALID_ARGUMENT, "the job's name is empty"),
        ({"tau_max": 4}, StatusCode.FAILED_PRECONDITION, "has tau_max 4, no div_max, and the"),
        ({"div_max": 1.5}, StatusCode.FAILED_PRECONDITION, "first station has no tau_max, no div"),
        (
            {"staleness": 3},
            StatusCode.FAILED_PRECONDITION,
            "has no tau_max, no div_max, staleness 3",
        ),
        ({"staleness": 0}, StatusCode.FAILED_PRECONDITION, "staleness 0"),
        ({"staleness": 0, "tau_max": 4}, StatusCode.INVALID_ARGUMENT, "drops nothing"),
        ({"div_max": math.nan}, StatusCode.INVALID_ARGUMENT, "Register.div_max is nan"),
        ({"job_token": "x"}, StatusCode.PERMISSION_DENIED, "refuses worker 5, which has a job"),
        ({"station_id": 0, "identity": b"x" * 16}, StatusCode.ALREADY_EXISTS, "another process"),
        ({"follow": "FollowAsReplica"}, StatusCode.INVALID_ARGUMENT, "address '' and port 0"),
        (
            {"follow": "FollowAsReplica", "address": "here", "port": 1},
            StatusCode.INVALID_ARGUMENT,
            "workers need an IPv4 address and a port",
        ),
        (
            {"follow": "FollowAsReplica", "address": "10.0.0.1", "port": 1, "station_id": 64},
            StatusCode.INVALID_ARGUMENT,
            "ids of servers lie below 64",
        ),
    ],
)
def test_station_is_refused(tmp_path: Path, fields: dict[str, Any], code: StatusCode, text: str):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (_, (good,)),
        ):
            defaults = {"station_id": 5, "host": "h3"}
            bad = FakeStation(controller.address, Role.WORKER, 5, **(defaults | fields))
            await bad.send(register=bad.request)
            refused, details = await bad.refusal()
            assert refused is code
            assert text in details
            await good.push(good.first_id)
            await good.granted()
            await bad.close()

    run(scenario())


def test_two_servers_with_one_id(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            other = FakeStation(controller.address, Role.SERVER, identity=b"x" * 16, host="h4")
            await other.send(register=other.request)
            code, details = await other.refusal()
            assert code is StatusCode.ALREADY_EXISTS
            assert "server 0 of job 'train' is registered from host h1" in details
            beyond = FakeStation(controller.address, Role.SERVER, 64, host="h4")
            await beyond.send(register=beyond.request)
            code, details = await beyond.refusal()
            assert (code, "ids of servers lie below 64" in details) == (
                StatusCode.INVALID_ARGUMENT,
                True,
            )
            await worker.push(worker.first_id)
            assert (await server.expected()).worker_id == 0
            for each in (other, beyond):
                await each.close()

    run(scenario())


def test_job_token_is_that_of_the_first_station_and_of_the_session(tmp_path: Path):
    async def scenario() -> None:
        async with transfer_controller(tmp_path) as controller:
            session = await FakeWorker(controller.address, 0, 1, job_token="secret").join()
            await session.join_reply()
            for token, code in (("", 1), ("guess", 1), ("secret", 0)):
                station = FakeStation(controller.address, Role.WORKER, job_token=token)
                if code:
                    await station.send(register=station.request)
                    refused, details = await station.refusal()
                    assert refused is StatusCode.PERMISSION_DENIED
                    assert token not in details or not token
                else:
                    await station.register()
                await station.close()
            await session.close()

    run(scenario())


def test_stations_send_what_is_for_their_role(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, workers),
        ):
            await workers[0].deliver(0, workers[0].first_id)
            await workers[1].send(register=workers[1].request)
            await server.push(0)
            for station, kind in ((workers[0], "delivered"), (workers[1], "register")):
                code, details = await station.refusal()
                assert code is StatusCode.INVALID_ARGUMENT
                assert f"unexpected message '{kind}' of a worker" in details
            code, details = await server.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert "unexpected message 'requested' of a server" in details

    run(scenario())


def test_server_reports_what_has_come_to_another_one(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (_, (worker,)),
        ):
            liar = FakeStation(controller.address, Role.SERVER, 1, host="h4")
            await liar.register()
            await worker.push(worker.first_id)
            await worker.granted()
            await liar.deliver(0, worker.first_id)
            code, details = await liar.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert "is for server 0, and server 1 reports it" in details
            assert controller.transfers.job("train").workers[0].counts.commits == 0
            await liar.close()

    run(scenario())


def test_flood_of_requests_is_bounded(tmp_path: Path):
    async def scenario() -> None:
        options = {"max_open_per_worker": OPEN, "batch_wait_s": 3600.0}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 1) as (_, (flood,)),
        ):
            for number in range(OPEN + 1):
                await flood.push(flood.first_id + number)
            code, details = await flood.refusal()
            assert code is StatusCode.RESOURCE_EXHAUSTED
            assert "worker 0 has 8 transfers that wait or are under way" in details
            assert len(controller.transfers.job("train").workers[0].records) == OPEN

    run(scenario())


def test_answers_that_nobody_reads_are_bounded(tmp_path: Path):
    """Repeated requests are answered again, until too many answers wait."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (_, (worker,)),
        ):
            place = controller.transfers.job("train").workers[0]
            await worker.push(worker.first_id)
            await until(lambda: place.counts.grants == 1)
            station = place.station
            assert station is not None
            record = place.records[worker.first_id]
            job = controller.transfers.job("train")
            for _ in range(MAX_UNREAD[StationRole.WORKER] + 2):  # no stream is written meanwhile
                job.flow.answer_again(place, record, record.request)
            assert not station.is_attached
            code, details = await worker.refusal()
            assert code is StatusCode.RESOURCE_EXHAUSTED
            assert "worker 0 of job 'train' has not read 1024 answers" in details

    run(scenario())


def test_jobs_and_stations_are_bounded(tmp_path: Path):
    async def scenario() -> None:
        options = {"max_jobs": 2, "max_stations": 2}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 1),
        ):
            for fields, text in (
                ({"station_id": 1}, "job 'train' has 2 stations, and no more may register"),
                ({"job_name": "other"}, "1 jobs of callers at 127."),
            ):
                more = FakeStation(controller.address, Role.WORKER, 1, **fields)
                await more.send(register=more.request)
                code, details = await more.refusal()
                assert code is StatusCode.RESOURCE_EXHAUSTED
                assert text in details
                await more.close()

    run(scenario())
