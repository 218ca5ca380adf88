# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers of jobs whose workers wait for each other: orders of grants, and the timeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import command, run
from fake_station import FakeStation, stations, transfer_controller
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until

__all__ = ["command"]
Command = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]
MB = 1_000_000


async def grants_of_batch(
    controller: ControllerServer, requests: Sequence[dict[str, int]], staleness: int
) -> list[pb.TransferGranted]:
    """Let a worker make each request, all in one batch; return the grants by worker."""
    async with AsyncExitStack() as stack:
        workers: list[FakeStation] = []
        for number, request in enumerate(requests):
            worker = FakeStation(controller.address, Role.WORKER, number, staleness=staleness)
            stack.push_async_callback(worker.close)
            await worker.register()
            await worker.push(worker.first_id, **request)
            workers.append(worker)
        job = controller.transfers.job("train")
        await until(lambda: all(place.counts.pushes for place in job.workers.values()))
        # The requests wait for their server, so they are in one batch.
        server = FakeStation(controller.address, Role.SERVER, staleness=staleness)
        stack.push_async_callback(server.close)
        await server.register()
        return [await worker.granted() for worker in workers]


def test_the_slowest_clock_is_first(tmp_path: Path):
    log = tmp_path / "transfers.jsonl"

    async def scenario() -> None:
        async with transfer_controller(tmp_path, transfers={"log": log}) as controller:
            requests = [
                {"clock": 3, "size_bytes": 1 * MB},
                {"clock": 1, "size_bytes": 40 * MB},
                {"clock": 2, "size_bytes": 10 * MB},
                {"clock": 2, "size_bytes": 5 * MB},
            ]
            grants = await grants_of_batch(controller, requests, staleness=2)
            assert [grant.sequence for grant in grants] == [3, 0, 2, 1]

    run(scenario())
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    granted = [line["clock"] for line in lines if line["event"] == "granted"]
    assert granted == [1, 2, 2, 3]


@pytest.mark.parametrize(("staleness", "last_s"), [(0, 10.0), (1, 13.0)])
def test_a_synchronous_batch_ends_as_soon_as_it_can(tmp_path: Path, staleness: int, last_s: float):
    """A worker at 10 Mbit/s among three at 100 Mbit/s, with updates of 12.5 MB each."""

    async def scenario() -> None:
        async with transfer_controller(tmp_path, (100, 10, 100, 100, 100)) as controller:
            grants = await grants_of_batch(controller, [{}] * 4, staleness)
            assert max(grant.spans[-1].end_s for grant in grants) == pytest.approx(last_s, abs=1e-6)

    run(scenario())


def test_factors_are_those_of_asynchronous_jobs_alone(tmp_path: Path):
    async def scenario() -> None:
        options = {"learning_rate": "inverse"}
        async with transfer_controller(tmp_path, transfers=options) as controller:
            grants = await grants_of_batch(controller, [{}] * 3, staleness=1)
            assert [grant.learning_rate_factor for grant in grants] == [0.0] * 3

    run(scenario())


@pytest.mark.parametrize(("staleness", "text"), [(0, "synchronous"), (3, "staleness 3")])
def test_the_mode_is_shown(tmp_path: Path, command: Command, staleness: int, text: str):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1, staleness=staleness),
        ):
            at = ("--controller", controller.address, "--insecure")
            _, out, _ = await command("schedule", "show", "train", *at)
            assert f"job train: {text}; for" in out
            _, out, _ = await command("schedule", "show", "train", "--json", *at)
            assert json.loads(out)["staleness"] == staleness

    run(scenario())


def test_workers_of_one_host_go_on_side_by_side(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2, staleness=1, host="h3") as (server, workers),
        ):
            for clock in range(3):
                for worker in workers:
                    await worker.push(worker.first_id + clock, clock=clock)
                    granted = await worker.granted()
                    await server.deliver(worker.request.station_id, granted.transfer_id)
            job = controller.transfers.job("train")
            await until(lambda: all(w.counts.commits == 3 for w in job.workers.values()))

    run(scenario())
