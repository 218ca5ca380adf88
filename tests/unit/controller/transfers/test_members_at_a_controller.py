# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members of allreduces and the controller that plans for them, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from controller_fixtures import run
from fake_station import transfer_controller
from member_scene import check_sums, error_of, free_addresses, reduce_all, vectors_of
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.allreduces.live_allreduces import LiveAllreduces
from switchfold.hostlib.errors import MemberLostError, PeerMismatchError
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.transfers import FabricMember, TransferOptions
from time_bound import until

VALUES = 30_011
WAIT_S = 3600.0


@asynccontextmanager
async def at_a_controller(
    folder: Path, count: int, rate_mbit: float = 100, **transfers: Any
) -> AsyncGenerator[tuple[ControllerServer, list[FabricMember]]]:
    """Open members on h1, h2, ..., which wait for grants however long they take."""
    waits = ("grant_wait_s", "server_wait_s", "lease_s", "reconnect_grace_s", "overdue_least_s")
    transfers = dict.fromkeys(waits, WAIT_S) | transfers
    async with transfer_controller(folder, (rate_mbit,) * 4, transfers=transfers) as controller:
        addresses = free_addresses(count)
        with ExitStack() as stack:

            def open_all() -> list[FabricMember]:
                return [
                    stack.enter_context(
                        FabricMember(
                            addresses,
                            TransferOptions(
                                controller=controller.address,
                                job="sums",
                                host=f"h{number + 1}",
                                grant_wait_s=WAIT_S,
                            ),
                            ClientOptions(worker_id=number, timeout_s=WAIT_S, insecure=True),
                        )
                    )
                    for number in range(count)
                ]

            members = await asyncio.to_thread(open_all)
            jobs = controller.transfers.jobs
            await until(lambda: "sums" in jobs and len(jobs["sums"].workers) == count)
            yield controller, members
            await asyncio.to_thread(stack.close)


def allreduces_of(controller: ControllerServer) -> LiveAllreduces:
    return controller.transfers.job("sums").allreduces


def test_members_add_up_as_the_controller_plans(tmp_path: Path):
    async def scenario() -> None:
        async with at_a_controller(tmp_path, 4) as (controller, members):
            for seed in range(3):
                vectors = vectors_of(4, VALUES, seed)
                futures = reduce_all(members, vectors)
                await asyncio.to_thread(check_sums, futures, vectors)
            for member in members:
                assert member.counters["granted_allreduces"] == 3
                assert not member.counters["ungranted_allreduces"]
            allreduces = allreduces_of(controller)
            await until(lambda: allreduces.is_idle)
            tally = allreduces.tally
            assert (tally.granted, tally.ended, tally.failed, tally.overdue) == (3, 3, 0, 0)

    run(scenario())


def test_members_that_disagree_hear_who_does(tmp_path: Path):
    async def scenario() -> None:
        async with at_a_controller(tmp_path, 3) as (controller, members):
            vectors = [np.ones(count, np.float32) for count in (30, 40, 30)]
            for future in reduce_all(members, vectors):
                error = await asyncio.to_thread(error_of, future)
                assert isinstance(error, PeerMismatchError)
                assert "workers 1: allreduce 1 of 160 bytes" in str(error)
            equal = vectors_of(3, 40)
            await asyncio.to_thread(check_sums, reduce_all(members, equal), equal)
            assert allreduces_of(controller).tally.failed == 1

    run(scenario())


def test_a_member_that_leaves_before_its_call_is_named(tmp_path: Path):
    async def scenario() -> None:
        async with at_a_controller(tmp_path, 3, reconnect_grace_s=0.05) as (controller, members):
            vectors = vectors_of(3, VALUES)
            futures = reduce_all(members[:2], vectors[:2])
            allreduces = allreduces_of(controller)
            await until(lambda: len(allreduces._waiting) == 2)
            await asyncio.to_thread(members[2].close)
            for future in futures:
                error = await asyncio.to_thread(error_of, future)
                assert isinstance(error, MemberLostError)
                assert error.worker_id == 2
            assert allreduces.is_idle

    run(scenario())


def test_a_member_that_leaves_while_vectors_travel_is_named(tmp_path: Path):
    """The links carry 1 kbit/s, so nothing arrives in the time of a test."""

    async def scenario() -> None:
        slow = at_a_controller(
            tmp_path, 3, 0.001, default_rate_bits_per_s=1000, reconnect_grace_s=0.05
        )
        async with slow as (controller, members):
            vectors = vectors_of(3, VALUES)
            futures = reduce_all(members, vectors)
            allreduces = allreduces_of(controller)
            await until(lambda: all(each.counters["granted_allreduces"] for each in members))
            await asyncio.to_thread(members[1].close)
            for future in futures[0], futures[2]:
                error = await asyncio.to_thread(error_of, future)
                assert isinstance(error, MemberLostError)
                assert error.worker_id == 1
            await until(lambda: allreduces.is_idle)

    run(scenario())
