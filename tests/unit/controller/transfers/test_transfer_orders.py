# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: the order of grants, places in the sequence, drops by the bound on delays."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from controller_fixtures import run
from fake_station import UPDATE_BYTES, FakeStation, stations, transfer_controller
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from time_bound import until

MB = 1_000_000


def moved_bytes(granted: pb.TransferGranted) -> float:
    return sum((s.end_s - s.start_s) * s.rate_bits_per_s / 8 for s in granted.spans)


@asynccontextmanager
async def one_batch(
    controller: ControllerServer, sizes: Sequence[int], **fields: int
) -> AsyncGenerator[tuple[FakeStation, list[FakeStation], list[int]]]:
    """Yield a server, workers with an update of these sizes each, and the ids of these.

    Workers ask before their server is there, so that all requests are in one batch.
    """
    async with AsyncExitStack() as stack:
        workers: list[FakeStation] = []
        ids: list[int] = []
        for number, size in enumerate(sizes):
            worker = FakeStation(controller.address, Role.WORKER, number, **fields)
            stack.push_async_callback(worker.close)
            ids.append((await worker.register()).next_transfer_id)
            await worker.push(ids[-1], size_bytes=size)
            workers.append(worker)
        job = controller.transfers.job("train")
        await until(
            lambda: sum(place.counts.pushes for place in job.workers.values()) == len(sizes)
        )
        server = FakeStation(controller.address, Role.SERVER, **fields)
        stack.push_async_callback(server.close)
        await server.register()
        yield server, workers, ids


def test_shortest_update_is_first(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            one_batch(controller, [40 * MB, 10 * MB, 20 * MB]) as (server, workers, ids),
        ):
            grants = [await worker.granted() for worker in workers]
            assert [grant.transfer_id for grant in grants] == ids
            ends = [grant.spans[-1].end_s for grant in grants]
            assert ends == pytest.approx([5.6, 0.8, 2.4], abs=1e-6)
            assert [grant.spans[0].start_s for grant in grants] == pytest.approx(
                [2.4, 0.0, 0.8], abs=1e-6
            )
            assert [moved_bytes(grant) for grant in grants] == pytest.approx(
                [40 * MB, 10 * MB, 20 * MB]
            )
            assert [grant.sequence for grant in grants] == [2, 0, 1]
            assert [grant.delay for grant in grants] == [2, 0, 1]
            expected = [await server.expected() for _ in workers]
            assert [(e.sequence, e.worker_id, e.transfer_id) for e in expected] == [
                (0, 1, ids[1]),
                (1, 2, ids[2]),
                (2, 0, ids[0]),
            ]
            assert [e.due_s for e in expected] == pytest.approx([0.8, 2.4, 5.6], abs=1e-6)

    run(scenario())


def test_slow_worker_sends_nothing_where_others_would_wait(tmp_path: Path):
    """MLfabric's figure 5: one of four workers has 10 Mbit/s, and tau_max is 2."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, (100, 10, 100, 100, 100)) as controller,
            one_batch(controller, [UPDATE_BYTES] * 4, tau_max=2) as (server, workers, ids),
        ):
            dropped = await workers[0].dropped()
            assert dropped == pb.TransferDropped(
                transfer_id=ids[0], reason="no order fits", delay=0
            )
            grants = [await worker.granted() for worker in workers[1:]]
            ends = [grant.spans[-1].end_s for grant in grants]
            assert ends == pytest.approx([1.0, 2.0, 3.0], abs=1e-6)
            assert max(grant.delay for grant in grants) == 2
            expected = [(await server.expected()).worker_id for _ in grants]
            assert expected == [1, 2, 3], "the server waits for no dropped update"
            counts = controller.transfers.job("train").workers[0].counts
            assert (counts.pushes, counts.drops, counts.grants) == (1, 1, 0)

    run(scenario())


def test_nothing_is_dropped_without_a_bound(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, (100, 10, 100, 100, 100)) as controller,
            one_batch(controller, [UPDATE_BYTES] * 4) as (_, workers, _),
        ):
            slow = await workers[0].granted()
            assert slow.delay == 3
            assert slow.spans[-1].end_s > 10.0 - 1e-6
            assert {span.rate_bits_per_s for span in slow.spans} == {10 * MB}

    run(scenario())


def test_versions_count_granted_and_direct_updates(tmp_path: Path):
    """A delay is what the server applies between an update's version and the update."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 2, version=50) as (server, workers),
        ):
            one, other = workers
            place = controller.transfers.job("train").servers[0]
            first = one.first_id
            await one.push(first, version=50)
            assert (await one.granted()).delay == 0
            await server.deliver(0, first)
            await server.deliver(1, other.first_id, is_granted=False)
            await server.send(committed=pb.UpdatesCommitted(version=52))
            await until(lambda: place.reported_version == 52)
            await other.push(other.first_id + 1, version=51)
            assert (await other.granted()).delay == 1
            await one.push(first + 1, version=52)
            grant = await one.granted()
            assert (grant.sequence, grant.delay) == (2, 1), "one update is under way"
            counts = {n: w.counts for n, w in controller.transfers.job("train").workers.items()}
            assert (counts[0].grants, counts[0].commits, counts[0].ungranted) == (2, 1, 0)
            assert (counts[1].grants, counts[1].commits, counts[1].ungranted) == (1, 0, 1)

    run(scenario())


def test_two_servers_share_the_links_of_workers(tmp_path: Path):
    """Each has its own sequence; a worker's link carries one update after the other."""

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (first, (worker,)),
        ):
            second = FakeStation(controller.address, Role.SERVER, 1, host="h5")
            await second.register()
            size = 100 * UPDATE_BYTES
            await worker.push(worker.first_id, server_id=0, size_bytes=size)
            await worker.push(worker.first_id + 1, server_id=1, size_bytes=size)
            grants = [await worker.granted() for _ in range(2)]
            assert [grant.sequence for grant in grants] == [0, 0]
            assert grants[0].spans[-1].end_s == pytest.approx(100.0)
            end_s = grants[1].spans[-1].end_s
            assert 100.0 < end_s <= 200.0 + 1e-6, "it begins when the first one ends"
            assert (await first.expected()).transfer_id == worker.first_id
            assert (await second.expected()).transfer_id == worker.first_id + 1
            await second.close()

    run(scenario())


def test_server_on_the_workers_own_host_needs_no_network(tmp_path: Path):
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1, host="h3") as (_, (worker,)),
        ):
            await worker.push(worker.first_id)
            assert not (await worker.granted()).spans

    run(scenario())


def test_batch_closes_when_it_is_due_without_polling(tmp_path: Path):
    """With a grant open, requests wait for each other; the batch closes with the third."""

    async def scenario() -> None:
        options = {"batch_max": 3, "batch_wait_s": 3600.0}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 4) as (_, workers),
        ):
            await workers[0].push(workers[0].first_id)
            assert (await workers[0].granted()).sequence == 0
            for worker, size in zip(workers[1:], (30, 20, 10), strict=True):
                await worker.push(worker.first_id, size_bytes=size * MB)
            sequences = [(await worker.granted()).sequence for worker in workers[1:]]
            assert sequences == [3, 2, 1]
            cost = controller.transfers.job("train").flow.schedule.cost
            assert (cost.decisions, cost.batches) == (4, 2), "nothing was decided in between"
            assert cost.longest_s <= cost.seconds

    run(scenario())


@pytest.mark.parametrize(
    ("rule", "factors"),
    [("none", [0.0, 0.0]), ("inverse", [1.0, 0.5]), ("square_root", [1.0, (9 / 11) ** 0.5])],
)
def test_updates_are_scaled_by_their_delay(tmp_path: Path, rule: str, factors: list[float]):
    """With kappa 2: the second update is applied after 8, with a delay of 1."""

    async def scenario() -> None:
        options = {"learning_rate": rule, "kappa": 2.0}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 2, version=7) as (server, workers),
        ):
            for worker, factor in zip(workers, factors, strict=True):
                await worker.push(worker.first_id, version=7)
                assert (await worker.granted()).learning_rate_factor == pytest.approx(factor)
                assert (await server.expected()).learning_rate_factor == pytest.approx(factor)

    run(scenario())
