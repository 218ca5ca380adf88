# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: models that workers relay, as their server is told of them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import command, run
from fake_station import UPDATE_BYTES, FakeStation, refused_registration, transfer_controller
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.job_transfers import JobTransfers
from switchfold.controller.transfers.live_schedule import LiveSchedule
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until

__all__ = ["command"]
Command = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]
MBIT = 1_000_000
BUSY = 0
"""Worker of the model that keeps the server's link busy."""
CHAIN = (1, 2, 3)
"""Workers whose models are one batch, in the order of their hosts' names."""
FIRST = 11
"""The server's number for the model of worker 1."""
SLACK_S = 2.5


def place_of(worker_id: int) -> pb.ModelRelay:
    return pb.ModelRelay(address=f"10.0.0.{worker_id + 2}", port=7000 + worker_id)


@dataclass
class Stations:
    """A server and workers, of which all but some relay."""

    controller: ControllerServer
    server: FakeStation
    workers: list[FakeStation]
    last: list[pb.TransferGranted] = field(default_factory=list[pb.TransferGranted])
    """The grants of a batch, as they came."""

    @property
    def job(self) -> JobTransfers:
        return self.controller.transfers.job("train")

    async def ask(self, worker_id: int, transfer_id: int = 0, megabytes: int = 0) -> None:
        """Ask for the grant of a model, of 1 s at 100 Mbit/s unless its size is given."""
        request = pb.ModelRequested(
            transfer_id=transfer_id or FIRST - 1 + worker_id,
            worker_id=worker_id,
            size_bytes=megabytes * 1_000_000 or UPDATE_BYTES,
        )
        await self.server.send(model_requested=request)

    async def occupy(self) -> None:
        """Let a model of 1,000 s travel, so that those that follow are one batch."""
        await self.ask(BUSY, FIRST - 1, megabytes=12_500)
        await self.server.granted()

    async def granted(self) -> list[pb.TransferGranted]:
        """Return the grants of a batch, by their numbers."""
        self.last = [await self.server.granted() for _ in CHAIN]
        return sorted(self.last, key=lambda each: each.transfer_id)

    async def ask_all(self) -> list[pb.TransferGranted]:
        """Ask for the models of a batch; return the grants."""
        await self.occupy()
        for number in CHAIN:
            await self.ask(number)
        return await self.granted()

    async def deliver(self, transfer_id: int) -> None:
        await self.server.send(model_delivered=pb.ModelDelivered(transfer_id=transfer_id))

    async def withdraw(self, transfer_id: int) -> None:
        """Say that a model is sent without its grant."""
        withdrawn = pb.TransferWithdrawn(transfer_id=transfer_id, is_sent_ungranted=True)
        await self.server.send(withdrawn=withdrawn)

    async def observe(self, transfer_id: int, seconds: float, network_wait_s: float) -> None:
        observed = pb.RateObserved(
            transfer_id=transfer_id,
            size_bytes=UPDATE_BYTES,
            seconds=seconds,
            network_wait_s=network_wait_s,
        )
        await self.server.send(rate_observed=observed)


@asynccontextmanager
async def relaying(
    folder: Path, alone: tuple[int, ...] = (), **transfers: Any
) -> AsyncGenerator[Stations]:
    """Yield stations; the workers `alone` have no place for models of others."""
    options = {
        "relay_max": 8,
        "relay_slack_s": SLACK_S,
        "batch_max": len(CHAIN),
        "batch_wait_s": 3600.0,
    }
    async with AsyncExitStack() as stack:
        made = transfer_controller(folder, transfers=options | transfers)
        controller = await stack.enter_async_context(made)
        server = FakeStation(controller.address, Role.SERVER)
        stack.push_async_callback(server.close)
        await server.register()
        workers: list[FakeStation] = []
        for number in (BUSY, *CHAIN):
            fields = {} if number in alone else {"relay": place_of(number)}
            worker = FakeStation(controller.address, Role.WORKER, number, **fields)
            stack.push_async_callback(worker.close)
            await worker.register()
            workers.append(worker)
        yield Stations(controller, server, workers)


def hops(grants: list[pb.TransferGranted]) -> list[tuple[int, int | None]]:
    """Return models, and those whose workers send them on; None: the server sends."""
    return [
        (
            each.transfer_id,
            each.model_hop.sender_transfer_id if each.HasField("model_hop") else None,
        )
        for each in grants
    ]


def spans(granted: pb.TransferGranted) -> list[tuple[float, float, int]]:
    return [(span.start_s, span.end_s, span.rate_bits_per_s) for span in granted.spans]


def test_a_server_is_told_who_sends_each_model_of_a_chain(tmp_path: Path):
    log = tmp_path / "transfers.jsonl"

    async def scenario() -> None:
        async with relaying(tmp_path, log=log) as stations:
            grants = await stations.ask_all()
            assert hops(grants) == [(FIRST, None), (FIRST + 1, FIRST), (FIRST + 2, FIRST + 1)]
            assert stations.last == grants[::-1], "the server begins with the last one"
            for worker_id, granted in zip(CHAIN[1:], grants[1:], strict=True):
                hop, place = granted.model_hop, place_of(worker_id)
                assert (hop.address, hop.port) == (place.address, place.port)
                assert hop.wait_s == granted.spans[-1].end_s + SLACK_S
            assert spans(grants[0]) == spans(grants[1]) == spans(grants[2])
            (span,) = grants[0].spans
            assert span.end_s - span.start_s == pytest.approx(1)
            for granted in grants:
                await stations.observe(granted.transfer_id, 1.0, 0.0)
                await stations.deliver(granted.transfer_id)
            tally = stations.job.models.tally
            await until(lambda: tally.delivered == 3)
            assert (tally.requested, tally.granted, tally.relayed) == (4, 4, 2)
            assert (tally.ungranted, tally.withdrawn) == (0, 0)

    run(scenario())
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    granted = [line for line in lines if line["event"] == "model_granted"]
    assert [line.get("relayed_by") for line in granted] == [None, 2, 1, None]
    limits = [line["limit"] for line in lines if line["event"] == "model_observed"]
    assert limits == ["grant"] * 3


def test_a_model_that_no_relay_has_delivered_is_sent_without_a_grant(tmp_path: Path):
    async def scenario() -> None:
        async with relaying(tmp_path) as stations:
            await stations.ask_all()
            await stations.withdraw(FIRST + 1)
            for number in FIRST, FIRST + 1, FIRST + 2:
                await stations.deliver(number)
            tally = stations.job.models.tally
            await until(lambda: tally.delivered == 2)
            assert (tally.granted, tally.ungranted) == (4, 1)
            assert [each.transfer_id for each in stations.job.models.open_records] == [FIRST - 1]

    run(scenario())


def test_a_server_that_comes_back_is_told_the_same_hop_while_its_sender_is_open(tmp_path: Path):
    async def scenario() -> None:
        async with relaying(tmp_path) as stations:
            first = await stations.ask_all()
            await stations.server.close()
            stations.server = FakeStation(stations.controller.address, Role.SERVER)
            await stations.server.register()
            for number in CHAIN:
                await stations.ask(number)
            again = await stations.granted()
            assert hops(again) == hops(first)
            for granted in again[1:]:
                assert granted.model_hop.wait_s == granted.spans[-1].end_s + SLACK_S
            assert stations.job.models.tally.relayed == 2
            await stations.deliver(FIRST)
            for number in CHAIN[1:]:
                await stations.ask(number)
            later = [await stations.server.granted() for _ in CHAIN[1:]]
            assert hops(later) == [(FIRST + 1, None), (FIRST + 2, FIRST + 1)]
            await stations.server.close()

    run(scenario())


def test_workers_without_a_place_have_their_models_from_the_server(tmp_path: Path):
    async def scenario() -> None:
        async with relaying(tmp_path, alone=(2,)) as stations:
            grants = await stations.ask_all()
            assert hops(grants) == [(FIRST, None), (FIRST + 1, None), (FIRST + 2, FIRST)]
            assert grants[1].spans[0].start_s == pytest.approx(grants[0].spans[-1].end_s)
            place = place_of(3)
            assert grants[2].model_hop.address == place.address

    run(scenario())


def test_without_the_option_nobody_relays(tmp_path: Path):
    async def scenario() -> None:
        async with relaying(tmp_path, relay_max=1) as stations:
            grants = await stations.ask_all()
            assert hops(grants) == [(FIRST, None), (FIRST + 1, None), (FIRST + 2, None)]
            assert stations.job.models.tally.relayed == 0

    run(scenario())


@pytest.mark.parametrize(
    ("detached", "sender_of_last"), [(1, FIRST + 1), (2, None)], ids=["the first", "one between"]
)
def test_nobody_relays_whose_stream_is_broken(
    tmp_path: Path, detached: int, sender_of_last: int | None
):
    """The plan has a chain, since the stream breaks after the request; the server sends then."""

    async def scenario() -> None:
        async with relaying(tmp_path) as stations:
            await stations.occupy()
            for number in CHAIN[:2]:
                await stations.ask(number)
            await until(lambda: len(stations.job.models.open_records) == 3)
            station = stations.job.workers[detached].station
            assert station is not None
            await stations.workers[detached].close()
            await until(lambda: not station.is_attached)
            await stations.ask(3)
            grants = await stations.granted()
            assert hops(grants) == [
                (FIRST, None),
                (FIRST + 1, None),
                (FIRST + 2, sender_of_last),
            ]
            assert spans(grants[0]) == spans(grants[1]) == spans(grants[2])
            # The server's link has carried the second model, and not that of worker 1.
            await stations.withdraw(FIRST - 1)
            await stations.observe(FIRST + 1, 4.0, 3.0)
            await until(lambda: bool(stations.job.tracker.slowed()))
            assert sorted(stations.job.tracker.slowed()) == ["h1", "h4"]

    run(scenario())


def test_no_model_waits_for_a_worker_that_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The scheduler is told of its host, unless another worker is there."""
    left: list[str] = []
    leave = LiveSchedule.leave

    def note(schedule: LiveSchedule, host: str) -> None:
        leave(schedule, host)
        left.append(host)

    monkeypatch.setattr(LiveSchedule, "leave", note)

    async def scenario() -> None:
        async with relaying(tmp_path, reconnect_grace_s=0.05) as stations:
            beside = FakeStation(stations.controller.address, Role.WORKER, 7, host="h4")
            await beside.register()
            for worker in (stations.workers[2], stations.workers[3], beside):
                await worker.close()
                place = stations.job.workers[worker.request.station_id]
                await until(lambda place=place: place.station is None)
            assert left == ["h5", "h4"]

    run(scenario())


def test_what_a_relayed_model_shows_is_of_the_links_between_its_workers(tmp_path: Path):
    async def scenario() -> None:
        async with relaying(tmp_path) as stations:
            await stations.ask_all()
            await stations.observe(FIRST + 1, 4.0, 3.0)
            await until(lambda: bool(stations.job.tracker.slowed()))
            slowed = stations.job.tracker.slowed()
            assert sorted(slowed) == ["h3", "h4"]
            (up, down), whole = slowed["h3"]
            assert up < down == whole[1], "worker 1 has sent it"

    run(scenario())


def test_all_of_a_chain_have_the_least_headroom(tmp_path: Path):
    """The first one's links seem to carry half, and so it could be twice as fast by itself."""

    async def scenario() -> None:
        async with relaying(tmp_path) as stations:
            await stations.ask(BUSY, 1)
            assert (await stations.server.granted()).spans[0].rate_bits_per_s == 100 * MBIT
            await stations.observe(1, 2.0, 1.0)
            await stations.deliver(1)
            await until(lambda: bool(stations.job.tracker.slowed()))
            await stations.ask(BUSY, 2)
            (span,) = (await stations.server.granted()).spans
            assert span.end_s - span.start_s == pytest.approx(2)
            assert span.rate_bits_per_s == 100 * MBIT, "alone, with its headroom"
            await stations.deliver(2)
            grants = await stations.ask_all()
            assert hops(grants)[1:] == [(FIRST + 1, FIRST), (FIRST + 2, FIRST + 1)]
            assert spans(grants[0]) == spans(grants[1]) == spans(grants[2])
            (span,) = grants[0].spans
            assert span.rate_bits_per_s == pytest.approx(50 * MBIT, rel=0.01)
            records = stations.job.models.open_records
            assert [record.headroom for record in records if record.worker_id in CHAIN] == [1.0] * 3

    run(scenario())


@pytest.mark.parametrize(
    ("role", "address", "port", "reason"),
    [
        (Role.SERVER, "10.0.0.1", 7000, "server 1 takes models of other workers at '10.0.0.1'"),
        (Role.WORKER, "h9", 7000, "worker 1 takes models of other workers at 'h9'; workers do so"),
        (Role.WORKER, "10.0.0.9", 0, "ModelRelay.port is 0"),
    ],
)
def test_places_that_nobody_can_reach_are_refused(
    tmp_path: Path, role: Role, address: str, port: int, reason: str
):
    place = pb.ModelRelay(address=address, port=port)

    async def scenario() -> None:
        assert reason in await refused_registration(tmp_path, role, relay=place)

    run(scenario())


def test_an_operator_sees_who_sends_a_model(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "100")

    async def scenario() -> None:
        async with relaying(tmp_path) as stations:
            await stations.ask_all()
            at = ("--controller", stations.controller.address, "--insecure")
            _, out, _ = await command("schedule", "show", "train", *at)
            assert "4 models asked for, 4 granted, 2 from workers; 0 went without a grant" in out
            _, out, _ = await command("schedule", "show", "train", "--json", *at)
            report = json.loads(out)
            assert report["models"]["relayed"] == 2
            senders = [each.get("relayed_by") for each in report["transfers"]]
            assert senders == [None, None, 1, 2]

    run(scenario())
