# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: rates that workers report change the plans of later updates, and are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import command, run
from fake_station import UPDATE_BYTES, FakeStation, stations, transfer_controller
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from time_bound import until

__all__ = ["command"]
Command = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]
MBIT = 1_000_000


async def report(worker: FakeStation, transfer_id: int, seconds: float, **fields: float) -> None:
    await worker.send(
        rate_observed=pb.RateObserved(
            transfer_id=transfer_id, size_bytes=UPDATE_BYTES, seconds=seconds, **fields
        )
    )


def rate_of(granted: pb.TransferGranted) -> float:
    """Return the rate of a grant, which all its spans have, in Mbit/s."""
    (rate,) = {span.rate_bits_per_s for span in granted.spans}
    return rate / MBIT


def assert_planned(granted: pb.TransferGranted, mbits_per_s: float, most: float) -> None:
    """Assert that a grant has the times of a rate, and may be faster: the link may be, again."""
    seconds = sum(span.end_s - span.start_s for span in granted.spans)
    assert seconds == pytest.approx(8 * UPDATE_BYTES / MBIT / mbits_per_s)
    assert rate_of(granted) == pytest.approx(most)


def test_later_grants_have_the_times_of_the_rate_that_was_achieved(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    log = tmp_path / "transfers.jsonl"

    async def scenario() -> None:
        transfers = {"payload_share": 0.9, "log": log}
        async with (
            transfer_controller(tmp_path, transfers=transfers) as controller,
            stations(controller.address, 2) as (server, (slow, other)),
        ):
            job = controller.transfers.job("train")
            at = ("--controller", controller.address, "--insecure")
            await slow.push(slow.first_id)
            assert rate_of(await slow.granted()) == 90
            await report(slow, slow.first_id, 2.4, network_wait_s=1.2)
            await server.deliver(0, slow.first_id)
            await until(lambda: bool(job.tracker.slowed()))
            rate, whole = round(8 * UPDATE_BYTES / 2.4), 90 * MBIT
            # Nothing tells which end of its path is slow: it is both.
            assert job.tracker.slowed() == {
                "h1": ((whole, rate), (whole, whole)),
                "h2": ((rate, whole), (whole, whole)),
            }
            for number, worker in enumerate((slow, other)):
                await worker.push(worker.first_id + 1)
                assert_planned(await worker.granted(), rate / MBIT, 90)
                await server.deliver(number, worker.first_id + 1)
            code, out, _ = await command("schedule", "show", "train", *at)
            assert code == 0
            assert max(map(len, out.splitlines())) <= 80
            shown = " ".join(out.replace("│", " ").split())
            assert "Hosts whose links carry less than the file says" in out
            assert "h2 41.67 Mbit/s 90 Mbit/s 90 Mbit/s 90 Mbit/s" in shown
            _, out, _ = await command("schedule", "show", "train", "--json", *at)
            at_server, at_worker = json.loads(out)["rates"]
            assert (at_server["host"], at_server["down_bits_per_s"]) == ("h1", rate)
            assert (at_worker["host"], at_worker["up_bits_per_s"]) == ("h2", rate)

    run(scenario())
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    observed = [line["limit"] for line in lines if line["event"] == "observed"]
    assert observed == ["network"]


def test_an_open_grant_keeps_its_plan(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 3) as (server, (slow, waiting, other)),
        ):
            await slow.push(slow.first_id)
            await slow.granted()
            await server.expected()
            await waiting.push(waiting.first_id)
            before = await waiting.granted()
            expected = await server.expected()
            await report(slow, slow.first_id, 2.0, network_wait_s=1.0)
            job = controller.transfers.job("train")
            await until(lambda: bool(job.tracker.slowed()))
            await server.deliver(0, slow.first_id)
            # Asked again, it is told the same plan, moved by the time that has passed.
            await waiting.push(waiting.first_id)
            again = await waiting.granted()
            assert rate_of(again) == rate_of(before) == 100
            assert again.sequence == before.sequence == expected.sequence
            await other.push(other.first_id)
            assert_planned(await other.granted(), 50, 100)  # the server's link, too

    run(scenario())


@pytest.mark.parametrize("fields", [{}, {"network_wait_s": 0.1}])
def test_a_worker_that_was_late_itself_changes_no_plan(tmp_path: Path, fields: dict[str, float]):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            job = controller.transfers.job("train")
            for number in range(2):
                await worker.push(worker.first_id + number)
                assert rate_of(await worker.granted()) == 100
                await report(worker, worker.first_id + number, 3.0, **fields)
                await server.deliver(0, worker.first_id + number)
                await until(lambda number=number: job.workers[0].counts.commits == number + 1)
            assert job.tracker.slowed() == {}

    run(scenario())
