# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: servers ask for grants of models, and their workers' models take turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc
import pytest

from controller_fixtures import command, run
from fake_station import UPDATE_BYTES, FakeStation, stations, transfer_controller
from switchfold.controller.api.operator_api import schedule_pb2
from switchfold.controller.cli.schedule.text import chart_lines, head_lines, queue_rows
from switchfold.controller.transfers.job_transfers import JobTransfers
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until

__all__ = ["command"]
Command = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]
MBIT = 1_000_000


async def ask(server: FakeStation, transfer_id: int, worker_id: int, **fields: Any) -> None:
    """Ask for the grant of a model, which takes 1 s at 100 Mbit/s."""
    values: dict[str, Any] = {"size_bytes": UPDATE_BYTES, **fields}
    await server.send(
        model_requested=pb.ModelRequested(transfer_id=transfer_id, worker_id=worker_id, **values)
    )


async def deliver(server: FakeStation, transfer_id: int) -> None:
    await server.send(model_delivered=pb.ModelDelivered(transfer_id=transfer_id))


def seconds(granted: pb.TransferGranted) -> float:
    """Return how long the spans of a grant last together."""
    return sum(span.end_s - span.start_s for span in granted.spans)


def rate_of(granted: pb.TransferGranted) -> float:
    (rate,) = {span.rate_bits_per_s for span in granted.spans}
    return rate / MBIT


def tally(job: JobTransfers) -> tuple[int, int, int, int, int]:
    counts = job.models.tally
    return (
        counts.requested,
        counts.granted,
        counts.delivered,
        counts.ungranted,
        counts.withdrawn,
    )


def test_models_take_turns_on_the_uplink_of_their_server(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, (worker, _)),
        ):
            await ask(server, 1, 0, size_bytes=1000 * UPDATE_BYTES)  # 1,000 s
            first = await server.granted()
            await ask(server, 2, 1)
            second = await server.granted()
            assert (first.transfer_id, second.transfer_id) == (1, 2)
            assert rate_of(first) == rate_of(second) == 100
            assert seconds(first) == pytest.approx(1000)
            # Times count from each message: the second one came later.
            assert second.spans[0].start_s > 0
            assert second.spans[0].start_s <= first.spans[-1].end_s
            # An update travels in the other direction, and waits for no model.
            await worker.push(worker.first_id)
            update = await worker.granted()
            assert (update.spans[0].start_s, rate_of(update)) == (0, 100)
            await server.expected()
            for number in 1, 2:
                await deliver(server, number)
            job = controller.transfers.job("train")
            await until(lambda: tally(job) == (2, 2, 2, 0, 0))
            await ask(server, 3, 0)
            assert (await server.granted()).spans[0].start_s == 0

    run(scenario())


def test_a_model_waits_for_the_updates_that_its_own_would_wait_for(tmp_path: Path):
    async def scenario() -> None:
        transfers = {"most_queued_updates": 0.0}
        async with (
            transfer_controller(tmp_path, transfers=transfers) as controller,
            stations(controller.address, 2) as (server, (busy, _)),
        ):
            await busy.push(busy.first_id, size_bytes=1000 * UPDATE_BYTES)  # 1,000 s
            await busy.granted()
            await server.expected()
            await ask(server, 1, 1)
            # It takes 1 s to its worker.
            assert (await server.granted()).spans[0].start_s == pytest.approx(999, abs=900)
            await deliver(server, 1)
            await until(lambda: tally(controller.transfers.job("train")) == (1, 1, 1, 0, 0))

    run(scenario())


def test_a_model_for_nobody_is_refused_and_the_stream_stays(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            await ask(server, 1, 7)
            message = await server.receive()
            assert message.refused.transfer_id == 1
            assert "worker 7 is not registered" in message.refused.reason
            await ask(server, 2, 0)
            assert (await server.granted()).transfer_id == 2
            assert tally(controller.transfers.job("train")) == (2, 1, 0, 1, 0)

    run(scenario())


def test_more_models_than_a_worker_may_have_are_refused(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, transfers={"max_open_per_worker": 1}) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            await ask(server, 1, 0)
            await server.granted()
            await ask(server, 2, 0)
            assert "max_open_per_worker" in (await server.receive()).refused.reason

    run(scenario())


@pytest.mark.parametrize(
    ("fields", "text"),
    [({"size_bytes": 0}, "size_bytes"), ({"size_bytes": 5}, "with another size")],
)
def test_a_request_without_sense_ends_the_stream(tmp_path: Path, fields: Any, text: str):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            await ask(server, 1, 0)
            await server.granted()
            await ask(server, 1, 0, **fields)
            code, details = await server.refusal()
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert text in details

    run(scenario())


def test_the_same_server_is_told_its_grants_again(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, _),
        ):
            for number in 0, 1:
                await ask(server, 1 + number, number)
                await server.granted()
            await server.close()
            back = FakeStation(controller.address, Role.SERVER)
            await back.register()
            await ask(back, 2, 1)
            again = await back.granted()
            assert again.transfer_id == 2
            assert seconds(again) == pytest.approx(1)
            assert controller.transfers.job("train").models.tally.granted == 2
            await back.close()

    run(scenario())


def test_models_of_a_lost_worker_leave_room(tmp_path: Path):
    async def scenario() -> None:
        transfers = {"reconnect_grace_s": 0.05}
        async with (
            transfer_controller(tmp_path, transfers=transfers) as controller,
            stations(controller.address, 2) as (server, (lost, _)),
        ):
            await ask(server, 1, 0, size_bytes=100 * UPDATE_BYTES)
            await server.granted()
            await lost.close()
            job = controller.transfers.job("train")
            await until(lambda: tally(job) == (1, 1, 0, 0, 1))
            await ask(server, 2, 1)
            assert (await server.granted()).spans[0].start_s == 0
            await deliver(server, 1)  # it has left nevertheless
            await deliver(server, 2)
            await until(lambda: tally(job) == (2, 2, 1, 0, 1))

    run(scenario())


def test_a_server_that_is_started_again_counts_from_one(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            await ask(server, 1, 0, size_bytes=100 * UPDATE_BYTES)
            await server.granted()
            await server.close()
            job = controller.transfers.job("train")
            place = job.servers[0]
            await until(lambda: not place.is_attached)
            other = FakeStation(controller.address, Role.SERVER, identity=b"other process 16")
            await other.register()
            assert tally(job) == (1, 1, 0, 0, 1)
            await ask(other, 1, 0, size_bytes=50)
            assert (await other.granted()).spans[0].start_s == 0
            await other.close()

    run(scenario())


def test_a_model_of_which_nobody_hears_is_given_up(tmp_path: Path):
    async def scenario() -> None:
        transfers = {"overdue_least_s": 0.05, "overdue_ratio": 1.0}
        async with (
            transfer_controller(tmp_path, transfers=transfers) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            await ask(server, 1, 0, size_bytes=50)
            await server.granted()
            job = controller.transfers.job("train")
            await until(lambda: tally(job) == (1, 1, 0, 0, 1))
            assert not job.models.open_records

    run(scenario())


def test_what_is_sent_without_a_grant_and_how_fast_models_go_is_noted(tmp_path: Path):
    log = tmp_path / "transfers.jsonl"

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, transfers={"log": log}) as controller,
            stations(controller.address, 2) as (server, _),
        ):
            job = controller.transfers.job("train")
            await ask(server, 1, 0)
            await server.granted()
            slow = pb.RateObserved(
                transfer_id=1, size_bytes=UPDATE_BYTES, seconds=2.0, network_wait_s=1.0
            )
            await server.send(rate_observed=slow)
            await deliver(server, 1)
            await until(lambda: bool(job.tracker.slowed()))
            await ask(server, 2, 0)
            granted = await server.granted()
            assert seconds(granted) == pytest.approx(2), "the rate that was achieved"
            assert rate_of(granted) == 100, "the link may carry more again"
            withdrawn = pb.TransferWithdrawn(transfer_id=2, is_sent_ungranted=True)
            await server.send(withdrawn=withdrawn)
            await until(lambda: tally(job) == (2, 2, 1, 1, 0))

    run(scenario())
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [line["event"] for line in lines] == [
        *("model_requested", "model_granted", "model_observed", "model_delivered"),
        *("model_requested", "model_granted", "model_ungranted"),
    ]
    assert lines[2]["limit"] == "network"
    assert {(line["worker"], line["server"], line["bytes"]) for line in lines} == {
        (0, 0, UPDATE_BYTES)
    }


def test_an_operator_sees_models(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2) as (server, _),
        ):
            for number in 0, 1:
                await ask(server, 1 + number, number)
                await server.granted()
            await deliver(server, 1)
            job = controller.transfers.job("train")
            await until(lambda: job.models.tally.delivered == 1)
            at = ("--controller", controller.address, "--insecure")
            code, out, _ = await command("schedule", "show", "train", *at)
            assert code == 0
            assert max(map(len, out.splitlines())) <= 80
            assert "2 models asked for, 2 granted; 0 went without a grant, 0 were given up" in out
            assert "0 wait, 0 under way" in out, "these are updates"
            assert [line.split()[:3] for line in out.splitlines() if " model " in line] == [
                ["0", "0", "model"],
                ["1", "0", "model"],
            ]
            _, out, _ = await command("schedule", "show", "train", "--json", *at)
            report = json.loads(out)
            assert [(each["kind"], each["state"]) for each in report["transfers"]] == [
                ("model", "committed"),
                ("model", "granted"),
            ]
            assert report["models"]["requested"] == 2

    run(scenario())


def test_a_copy_for_a_replica_and_a_waiting_model_say_what_they_are():
    fields = {"size_bytes": 100, "worker_id": 3, "sequence": 9}
    report = schedule_pb2.ScheduleReport(
        transfers=[
            schedule_pb2.ScheduledTransfer(
                kind="replica", state="granted", start_s=-1.0, end_s=1.0, **fields
            ),
            schedule_pb2.ScheduledTransfer(kind="model", state="waiting", **fields),
        ]
    )
    assert [line.split()[:3] for line in chart_lines(report)[1:-1]] == [["3", "0", "replica"]]
    assert [row[3:5] for row in queue_rows(report)] == [("model", "waiting")]
    assert "  0 wait, 0 under way; 0 decisions in 0 batches" in head_lines(report)
