# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live allreduces: members are gathered, planned for, and told who is at fault."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from grpc import StatusCode

from controller_fixtures import run
from fake_station import FakeStation, stations, transfer_controller
from switchfold.controller.scheduler.errors import NoRouteError
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.allreduces.live_allreduces import LiveAllreduces
from switchfold.controller.transfers.live_schedule import LiveSchedule
from switchfold.hostlib.control.stations.allreduce_terms import MOST_MEMBERS
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from switchfold.hostlib.parameter_server.transfers.allreduces.vector_pieces import legs_of
from time_bound import until

VECTOR_BYTES = 12_500_000
"""1 s at 100 Mbit/s."""
WAIT_S = 3600.0


class Members(NamedTuple):
    """Workers on h2, h3, ..., and their controller."""

    controller: ControllerServer
    workers: list[FakeStation]

    @property
    def allreduces(self) -> LiveAllreduces:
        return self.controller.transfers.job("train").allreduces

    def stop_clock(self) -> None:
        """Plan, and tell of plans, at one moment."""
        schedule = self.controller.transfers.job("train").flow.schedule
        now_s = schedule.now_s()
        schedule.now_s = lambda: now_s  # type: ignore[method-assign]

    def tire(self) -> None:
        """Let the wait for further members be over."""
        timer = self.allreduces._timer
        assert timer is not None
        timer.cancel()
        self.allreduces._tire()

    async def ask_all(self, number: int = 1, **fields: Any) -> list[pb.AllreduceGranted]:
        """Let all members ask, and return their grants."""
        for worker in self.workers:
            await ask(worker, number, **({"num_members": len(self.workers)} | fields))
        return [await granted(worker) for worker in self.workers]


async def ask(worker: FakeStation, number: int = 1, **fields: Any) -> None:
    """Ask for an allreduce, and read that it is noted."""
    await ask_quietly(worker, number, **fields)
    message = await worker.receive()
    assert message.HasField("allreduce_noted"), message
    assert message.allreduce_noted.transfer_id == worker.first_id + number


async def ask_quietly(worker: FakeStation, number: int = 1, **fields: Any) -> None:
    defaults: dict[str, Any] = {
        "transfer_id": worker.first_id + number,
        "number": number,
        "size_bytes": VECTOR_BYTES,
        "num_members": 3,
        "wait_s": WAIT_S,
    }
    await worker.send(allreduce_requested=pb.AllreduceRequested(**(defaults | fields)))


async def granted(worker: FakeStation) -> pb.AllreduceGranted:
    message = await worker.receive()
    assert message.HasField("allreduce_granted"), message
    return message.allreduce_granted


async def failed(worker: FakeStation) -> pb.AllreduceFailed:
    message = await worker.receive()
    assert message.HasField("allreduce_failed"), message
    return message.allreduce_failed


async def end(worker: FakeStation, number: int = 1) -> None:
    await worker.send(allreduce_ended=pb.AllreduceEnded(transfer_id=worker.first_id + number))


@asynccontextmanager
async def members(
    folder: Path, count: int = 3, rates_mbit: Sequence[float] = (100,) * 6, **transfers: Any
) -> AsyncGenerator[Members]:
    patient = dict.fromkeys(("lease_s", "reconnect_grace_s", "overdue_least_s"), WAIT_S)
    transfers = patient | transfers
    async with AsyncExitStack() as stack:
        made = transfer_controller(folder, rates_mbit, transfers=transfers)
        controller = await stack.enter_async_context(made)
        workers = [FakeStation(controller.address, Role.WORKER, number) for number in range(count)]
        for worker in workers:
            stack.push_async_callback(worker.close)
            await worker.register()
        yield Members(controller, workers)


def test_all_members_get_the_same_pieces_and_their_own_legs(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path) as made:
            made.stop_clock()
            grants = await made.ask_all()
            pieces = grants[0].pieces
            assert [grant.pieces for grant in grants] == [pieces] * 3
            stop = 0
            for piece in pieces:
                assert piece.start_byte == stop < piece.stop_byte
                assert not piece.stop_byte % 4
                stop = piece.stop_byte
            assert stop == VECTOR_BYTES
            assert {piece.root_id for piece in pieces} == {0, 1, 2}
            for worker_id, (grant, worker) in enumerate(zip(grants, made.workers, strict=True)):
                assert grant.transfer_id == worker.first_id + 1
                legs = [(leg.piece, leg.receiver_id) for leg in grant.legs]
                assert sorted(legs) == sorted(legs_of(pieces, worker_id, 3))  # type: ignore[arg-type]
                for leg in grant.legs:
                    size = pieces[leg.piece].stop_byte - pieces[leg.piece].start_byte
                    moved = sum(
                        (span.end_s - span.start_s) * span.rate_bits_per_s / 8 for span in leg.spans
                    )
                    assert moved == pytest.approx(size)
                    assert max(span.end_s for span in leg.spans) <= grant.end_s + 1e-6
                # Each link carries 2 (n - 1) / n vectors.
                assert grant.end_s == pytest.approx(4 / 3, rel=0.05)

    run(scenario())


def test_what_is_reserved_is_given_back_when_all_have_ended(tmp_path: Path):
    log = tmp_path / "transfers.jsonl"

    async def scenario() -> None:
        async with members(tmp_path, log=log) as made:
            made.stop_clock()
            first = await made.ask_all()
            scheduler = made.controller.transfers.job("train").flow.schedule._scheduler
            for number in range(2):
                await end(made.workers[number])
            await until(lambda: len(made.allreduces._record.running) == 1)  # type: ignore[union-attr]
            assert len(scheduler._open._open) > 0
            await end(made.workers[2])
            await until(lambda: made.allreduces.is_idle)
            assert not scheduler._open._open
            second = await made.ask_all(2)
            assert [grant.end_s for grant in second] == pytest.approx(
                [grant.end_s for grant in first], rel=0.05
            )
            tally = made.allreduces.tally
            assert (tally.granted, tally.ended, tally.failed) == (2, 1, 0)

    run(scenario())
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["event"] for event in events] == [
        "allreduce_granted",
        "allreduce_ended",
        "allreduce_granted",
    ]
    assert events[0]["bytes"] == VECTOR_BYTES
    assert (events[0]["members"], events[2]["number"]) == (3, 2)


def test_a_member_that_asks_for_the_next_one_has_ended_the_one_before(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path) as made:
            for number in range(1, 4):
                await made.ask_all(number)
            assert made.allreduces.tally.granted == 3
            assert made.allreduces.tally.ended == 2

    run(scenario())


def test_slow_members_have_small_chunks_or_none(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path, rates_mbit=(100, 100, 100, 25, 100, 100)) as made:
            grants = await made.ask_all()
            share = [0, 0, 0]
            for piece in grants[0].pieces:
                share[piece.root_id] += piece.stop_byte - piece.start_byte
            assert share[2] < 0.1 * VECTOR_BYTES  # on h4
            assert grants[0].end_s < 4.8  # a ring takes 5.3 s

    run(scenario())


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"size_bytes": 400}, "workers 2: allreduce 1 of 400 bytes among 3"),
        ({"number": 7}, "workers 2: allreduce 7 of 12500000 bytes among 3"),
    ],
)
def test_members_that_disagree_all_hear_who_does(tmp_path: Path, fields: dict[str, Any], text: str):
    async def scenario() -> None:
        async with members(tmp_path) as made:
            for number, worker in enumerate(made.workers):
                await ask(worker, **(fields if number == 2 else {}))
            for worker in made.workers:
                told = await failed(worker)
                assert told.reason == pb.AllreduceFailed.MISMATCH
                assert text in told.text
                assert "workers 0, 1: allreduce 1 of 12500000 bytes" in told.text
                assert list(told.worker_ids) == [2]
            assert made.allreduces.is_idle
            await made.ask_all(2)

    run(scenario())


def test_members_that_expect_other_numbers_of_members_hear_so_in_the_end(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path) as made:
            await ask(made.workers[0], num_members=2)
            await ask(made.workers[1], num_members=3)
            made.tire()
            for worker in made.workers[:2]:
                told = await failed(worker)
                assert told.reason == pb.AllreduceFailed.MISMATCH
                assert list(told.worker_ids) == [0, 1]
                assert "among 2 members" in told.text
                assert "among 3 members" in told.text

    run(scenario())


def test_members_that_do_not_ask_in_time_are_named(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path) as made:
            await ask(made.workers[1], wait_s=0.2)
            told = await failed(made.workers[1])
            assert told.reason == pb.AllreduceFailed.MISSING
            assert list(told.worker_ids) == [0, 2]
            assert "workers 0, 2 have not asked for allreduce 1 within 0.2 s" in told.text
            # Asked again, as after a broken stream, it is told again; the next one is another.
            await ask_quietly(made.workers[1], wait_s=0.2)
            assert (await failed(made.workers[1])) == told
            await made.ask_all(2)

    run(scenario())


def test_a_member_that_is_lost_fails_what_it_takes_part_in(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path, reconnect_grace_s=0.05) as made:
            for worker in made.workers[:2]:
                await ask(worker)
            await made.workers[2].close()
            for worker in made.workers[:2]:
                told = await failed(worker)
                assert told.reason == pb.AllreduceFailed.LOST
                assert list(told.worker_ids) == [2]
            again = FakeStation(made.controller.address, Role.WORKER, 2, identity=bytes([9]) * 16)
            made.workers[2] = again
            await again.register()
            await made.ask_all(2)
            await again.close()
            for worker in made.workers[:2]:
                told = await failed(worker)
                assert told.reason == pb.AllreduceFailed.LOST
                assert told.transfer_id == worker.first_id + 2
                await end(worker, 2)
            await until(lambda: made.allreduces.is_idle)

    run(scenario())


def test_a_lost_worker_that_is_no_member_changes_nothing(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path, 3, reconnect_grace_s=0.05) as made:
            await ask(made.workers[0], num_members=2)
            await made.workers[2].close()
            job = made.controller.transfers.job("train")
            await until(lambda: job.workers[2].station is None)
            await ask(made.workers[1], num_members=2)
            for worker in made.workers[:2]:
                await granted(worker)

    run(scenario())


def test_a_member_whose_stream_broke_is_told_again(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path, 2) as made:
            first, second = made.workers
            await ask(first, num_members=2)
            job = made.controller.transfers.job("train")
            station = job.workers[0].station
            assert station is not None
            await first.close()
            await until(lambda: not station.is_attached)
            await ask(second, num_members=2)
            other = await granted(second)
            again = FakeStation(made.controller.address, Role.WORKER)
            await again.register()
            again.first_id = first.first_id
            await ask_quietly(again, num_members=2)
            grant = await granted(again)
            assert grant.pieces == other.pieces
            assert all(span.start_s >= 0 for leg in grant.legs for span in leg.spans)
            await ask_quietly(again, num_members=2)
            await granted(again)
            assert made.allreduces.tally.granted == 1
            await again.close()

    run(scenario())


def test_a_request_that_comes_twice_counts_once(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path, 2) as made:
            for _ in range(2):
                await ask(made.workers[0], num_members=2)
            await ask(made.workers[1], num_members=2)
            for worker in made.workers:
                await granted(worker)

    run(scenario())


def test_a_member_that_goes_on_without_a_grant_is_not_waited_for(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path, 2) as made:
            first, second = made.workers
            await ask(first, num_members=2)
            await first.send(
                withdrawn=pb.TransferWithdrawn(
                    transfer_id=first.first_id + 1, is_sent_ungranted=True
                )
            )
            await until(lambda: made.allreduces.is_idle)
            await ask(second, num_members=2, wait_s=0.2)
            assert list((await failed(second)).worker_ids) == [0]

    run(scenario())


def test_an_overdue_allreduce_keeps_nothing_reserved(tmp_path: Path):
    async def scenario() -> None:
        async with members(tmp_path, 2, overdue_ratio=1.0, overdue_least_s=0.05) as made:
            await made.ask_all(size_bytes=4000)
            await until(lambda: made.allreduces.is_idle)
            assert made.allreduces.tally.overdue == 1
            for worker in made.workers:
                await end(worker)
            await made.ask_all(2, size_bytes=4000)

    run(scenario())


def test_members_on_one_host_are_refused(tmp_path: Path):
    async def scenario() -> None:
        async with transfer_controller(tmp_path, transfers={"lease_s": WAIT_S}) as controller:
            workers = [FakeStation(controller.address, Role.WORKER, n, host="h2") for n in range(2)]
            for worker in workers:
                await worker.register()
                await ask(worker, num_members=2)
            for worker in workers:
                told = await failed(worker)
                assert told.reason == pb.AllreduceFailed.REFUSED
                assert "workers 0, 1 share a host" in told.text
                await worker.close()

    run(scenario())


def test_what_the_scheduler_cannot_plan_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise NoRouteError("no route joins h2 and h3")

    async def scenario() -> None:
        async with members(tmp_path, 2) as made:
            monkeypatch.setattr(LiveSchedule, "allreduce", refuse)
            for worker in made.workers:
                await ask(worker, num_members=2)
            for worker in made.workers:
                told = await failed(worker)
                assert told.reason == pb.AllreduceFailed.REFUSED
                assert told.text == "no route joins h2 and h3"
            monkeypatch.undo()
            await made.ask_all(2)

    run(scenario())


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"num_members": 1}, "an allreduce of 1 members"),
        ({"num_members": MOST_MEMBERS + 1}, f"an allreduce of {MOST_MEMBERS + 1} members"),
        ({"num_members": 2}, "worker 2 is none of 2 members"),
        ({"size_bytes": 10}, "a vector of 10 bytes"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, fields: dict[str, Any], text: str):
    async def scenario() -> None:
        async with members(tmp_path) as made:
            for worker in made.workers[:2]:
                await ask(worker)
            await ask_quietly(made.workers[2], **fields)
            told = await failed(made.workers[2])
            assert told.reason == pb.AllreduceFailed.REFUSED
            assert text in told.text
            odd = made.workers[2]
            await ask_quietly(odd, transfer_id=odd.first_id + 2)
            assert (await odd.receive()).HasField("allreduce_noted")
            for worker in made.workers:
                await granted(worker)

    run(scenario())


@pytest.mark.parametrize(
    "fields",
    [
        {"size_bytes": 0},
        {"size_bytes": 1 << 41},
        {"number": 0},
        {"wait_s": float("nan")},
        {"wait_s": -1.0},
        {"wait_s": float("inf")},
    ],
)
def test_numbers_beyond_their_range_end_the_stream(tmp_path: Path, fields: dict[str, Any]):
    async def scenario() -> None:
        async with members(tmp_path, 1) as made:
            await ask_quietly(made.workers[0], **fields)
            status, details = await made.workers[0].refusal()
            assert status is StatusCode.INVALID_ARGUMENT
            assert "AllreduceRequested" in details

    run(scenario())


def test_servers_ask_for_no_allreduce(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            await ask_quietly(server)
            status, _ = await server.refusal()
            assert status is StatusCode.INVALID_ARGUMENT

    run(scenario())


def test_updates_are_planned_beside_an_allreduce(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(
                tmp_path, (100,) * 4, transfers={"lease_s": WAIT_S, "overdue_least_s": WAIT_S}
            ) as controller,
            stations(controller.address, 2) as (server, workers),
        ):
            for worker in workers:
                await ask(worker, num_members=2, size_bytes=100 * VECTOR_BYTES)
            for worker in workers:
                assert (await granted(worker)).end_s == pytest.approx(100, rel=0.05)
            await workers[0].push(workers[0].first_id + 50)
            update = await workers[0].granted()
            await server.expected()
            assert update.spans[0].start_s > 10  # the uplink is taken until then

    run(scenario())
