# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live groups: which hosts gather, what stations are told, and members that do not come."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controller_fixtures import command, run
from fake_station import FakeStation, refused_registration, transfer_controller
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.job_transfers import JobTransfers
from switchfold.controller.transfers.live_groups import LiveGroup
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until

__all__ = ["command"]
NUM_WORKERS = 9
AGGREGATORS = (6, 7)
PUSHERS = range(6)
FIRST = 8
"""Worker whose update keeps the server's link busy."""


class Stations(NamedTuple):
    """A server on h1, and workers on h2 to h10."""

    controller: ControllerServer
    server: FakeStation
    workers: list[FakeStation]

    @property
    def job(self) -> JobTransfers:
        return self.controller.transfers.job("train")

    @property
    def gathering(self) -> list[int]:
        """The aggregators that have had groups."""
        return [group.aggregator.worker_id for group in self.job.flow.groups.shown]

    async def push_all(self, sum_key: int = 1, **fields: Any) -> list[pb.TransferGranted]:
        """Let all pushers ask, as one batch; return the grants by worker."""
        for number in PUSHERS:
            station = self.workers[number]
            await station.push(station.first_id, sum_key=sum_key, **fields)
        return [await self.workers[number].granted() for number in PUSHERS]

    async def gather_told(self, worker_id: int) -> pb.GatherExpected:
        """Return what an aggregator is told next."""
        message = await self.workers[worker_id].receive()
        assert message.HasField("gather"), message
        return message.gather


@asynccontextmanager
async def group_stations(
    folder: Path, aggregators: tuple[int, ...] = AGGREGATORS, **options: Any
) -> AsyncGenerator[Stations]:
    waits = ("batch_wait_s", "lease_s", "reconnect_grace_s", "overdue_least_s", "gather_slack_s")
    transfers = {"batch_max": len(PUSHERS)} | dict.fromkeys(waits, 3600.0) | options
    async with AsyncExitStack() as stack:
        made = transfer_controller(folder, (100,) * 10, transfers=transfers)
        controller = await stack.enter_async_context(made)
        server = FakeStation(controller.address, Role.SERVER)
        stack.push_async_callback(server.close)
        await server.register()
        workers: list[FakeStation] = []
        for number in range(NUM_WORKERS):
            place = pb.Aggregator(address=f"10.0.0.{number + 2}", port=7000 + number)
            fields = {"aggregator": place} if number in aggregators else {}
            station = FakeStation(controller.address, Role.WORKER, number, **fields)
            stack.push_async_callback(station.close)
            await station.register()
            workers.append(station)
        found = Stations(controller, server, workers)
        # The first request is granted at once: the six behind it are one batch, and the server's
        # link is busy for 10 s, whatever the machine does.
        first = workers[FIRST]
        await first.push(first.first_id, size_bytes=125_000_000)
        await first.granted()
        await server.expected()
        yield found


def groups_of(stations: Stations) -> list[LiveGroup]:
    return stations.job.flow.groups.shown


def test_members_and_aggregators_are_told_of_groups(tmp_path: Path):
    """The first of six equal updates goes directly; the others come to one host meanwhile."""

    async def scenario() -> None:
        async with group_stations(tmp_path) as stations:
            grants = await stations.push_all()
            hops = [grant.hop for grant in grants if grant.HasField("hop")]
            told = [await stations.gather_told(number) for number in stations.gathering]
            assert [len(each.members) for each in told] == [5]
            assert len(hops) == 5
            for each, aggregator in zip(told, stations.gathering, strict=True):
                assert {(hop.worker_id, hop.group_id) for hop in hops} == {
                    (aggregator, each.group_id)
                }
                assert {(hop.address, hop.port, hop.num_members, hop.kind) for hop in hops} == {
                    (f"10.0.0.{aggregator + 2}", 7000 + aggregator, 5, pb.GroupHop.HOST)
                }
                assert each.server_id == 0
                for member in each.members:
                    grant = grants[member.worker_id]
                    assert (grant.transfer_id, grant.hop.group_id) == (
                        member.transfer_id,
                        each.group_id,
                    )
                    assert grant.spans[-1].end_s <= each.gather_s
                    assert grant.hop.outcome_s > each.spans[-1].end_s
            places = [(await stations.server.expected()) for _ in PUSHERS]
            assert [place.sequence for place in places] == [1, 2, 3, 4, 5, 6]
            ends = {each.group_id: each.spans[-1].end_s for each in told}
            for place in places:
                grant = grants[place.worker_id]
                end_s = ends[grant.hop.group_id] if grant.HasField("hop") else 0.0
                assert place.due_s >= end_s - 1e-6

    run(scenario())


def test_delivered_members_count_like_other_updates(tmp_path: Path):
    async def scenario() -> None:
        async with group_stations(tmp_path) as stations:
            await stations.push_all()
            for number in stations.gathering:
                told = await stations.gather_told(number)
                for member in told.members:
                    gathered = pb.UpdateGathered(
                        group_id=told.group_id,
                        worker_id=member.worker_id,
                        transfer_id=member.transfer_id,
                    )
                    for _ in range(2):
                        await stations.workers[number].send(gathered=gathered)
            await until(lambda: all(len(group.gathered) == 5 for group in groups_of(stations)))
            for number in (FIRST, *PUSHERS):
                await stations.server.deliver(number, stations.workers[number].first_id)
            flow = stations.job.flow
            await until(lambda: flow.schedule.version(stations.job.servers[0]) % 1000 == 7 + 992)

    run(scenario())


@pytest.mark.parametrize(
    "aggregators", [(), (0,), (7,)], ids=["none", "it pushes itself", "one idle"]
)
def test_only_idle_hosts_gather(tmp_path: Path, aggregators: tuple[int, ...]):
    async def scenario() -> None:
        async with group_stations(tmp_path, aggregators) as stations:
            grants = await stations.push_all()
            hops = {grant.hop.worker_id for grant in grants if grant.HasField("hop")}
            assert hops == {7} & {*aggregators}

    run(scenario())


def test_updates_without_a_key_travel_alone(tmp_path: Path):
    async def scenario() -> None:
        async with group_stations(tmp_path) as stations:
            grants = await stations.push_all(sum_key=0)
            assert not any(grant.HasField("hop") for grant in grants)

    run(scenario())


def test_missing_members_are_given_up_and_their_places_skipped(tmp_path: Path):
    """Updates of 10 ms, of which the aggregator gets none."""

    async def scenario() -> None:
        async with group_stations(tmp_path, (7,), gather_slack_s=0.05) as stations:
            grants = await stations.push_all(size_bytes=125_000)
            told = await stations.gather_told(7)
            members = [member.worker_id for member in told.members]
            places = [await stations.server.expected() for _ in PUSHERS]
            skipped = [await stations.server.skipped() for _ in members]
            assert sorted(places[sequence - 1].worker_id for sequence in skipped) == sorted(members)
            job = stations.job
            assert job.flow.groups.counts.missing == len(members)
            assert [job.workers[number].counts.withdrawn for number in members] == [1] * len(
                members
            )
            # One comes nevertheless, by itself.
            await stations.server.deliver(
                members[0], grants[members[0]].transfer_id, is_granted=False
            )
            await until(lambda: job.workers[members[0]].counts.ungranted == 1)

    run(scenario())


def test_an_aggregator_whose_members_left_is_avoided(tmp_path: Path):
    async def scenario() -> None:
        async with group_stations(tmp_path, (7,)) as stations:
            grants = await stations.push_all()
            told = await stations.gather_told(7)
            member = told.members[0].worker_id
            left = pb.GroupLeft(group_id=told.group_id, transfer_id=grants[member].transfer_id)
            await stations.workers[member].send(left=left)
            groups = stations.job.flow.groups
            await until(lambda: groups.counts.left == 1)
            for number in (FIRST, *PUSHERS):
                await stations.server.deliver(number, stations.workers[number].first_id)
            await until(lambda: not any(group.is_open for group in groups.shown))
            assert groups.places().hosts == ()

    run(scenario())


def test_a_lost_aggregator_gets_no_groups(tmp_path: Path):
    async def scenario() -> None:
        async with group_stations(tmp_path, (7,)) as stations:
            assert stations.job.flow.groups.places().hosts == ("h9",)
            await stations.workers[7].close()
            station = stations.job.workers[7].station
            await until(lambda: station is None or not station.is_attached)
            assert stations.job.flow.groups.places().hosts == ()

    run(scenario())


@pytest.mark.parametrize(
    ("role", "address", "port", "reason"),
    [
        (Role.SERVER, "10.0.0.1", 7000, "server 1 gathers updates at '10.0.0.1'; workers do so"),
        (Role.WORKER, "h9", 7000, "worker 1 gathers updates at 'h9'"),
        (Role.WORKER, "10.0.0.9", 0, "Aggregator.port is 0"),
    ],
)
def test_aggregators_that_nobody_can_reach_are_refused(
    tmp_path: Path, role: Role, address: str, port: int, reason: str
):
    place = pb.Aggregator(address=address, port=port)

    async def scenario() -> None:
        assert reason in await refused_registration(tmp_path, role, aggregator=place)

    run(scenario())


def test_schedule_show_has_groups(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")

    async def scenario() -> None:
        async with group_stations(tmp_path, (7,)) as stations:
            await stations.push_all()
            told = await stations.gather_told(7)
            at = ("--controller", stations.controller.address, "--insecure")
            code, out, _ = await command("schedule", "show", "train", *at)
            assert code == 0
            assert f"1 groups of {len(told.members)} updates; 0 came too late" in out
            members = " ".join(str(member.worker_id) for member in told.members)
            row = next(line for line in out.splitlines() if "7 (h9)" in line)
            assert members in row
            assert f"0 of {len(told.members)}" in row

    run(scenario())
