# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions join a real controller; its switch is a fake, and so is the data plane."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from controller_fixtures import make_config, run, running_controller, serving
from fake_p4runtime import FakeP4Runtime
from fake_switch import FakeSwitch
from switchfold.hostlib import errors
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from time_bound import until

OPTIONS = SessionOptions(timeout_s=120.0, join_timeout_s=60.0, min_rto_s=0.01, initial_rto_s=0.02)


def join(
    address: str, switch: FakeSwitch, worker_id: int, options: SessionOptions = OPTIONS
) -> Session:
    arguments: dict[str, Any] = {
        "controller": address,
        "job": "train",
        "worker_id": worker_id,
        "num_workers": switch.num_workers,
        "transport": switch.transport(worker_id),
    }
    options = dataclasses.replace(options, ingress_port=worker_id + 1)
    return Session.join(options=options, **arguments)


async def join_all(address: str, switch: FakeSwitch, **changes: Any) -> list[Session]:
    joins = [
        asyncio.to_thread(join, address, switch, worker_id, **changes)
        for worker_id in range(switch.num_workers)
    ]
    sessions = await asyncio.gather(*joins)
    switch.adopt(sessions[0].view)
    return sessions


async def allreduce(sessions: list[Session], array: NDArray[Any]) -> list[NDArray[Any]]:
    futures = [session.allreduce(array) for session in sessions]
    return [await asyncio.to_thread(future.result, 60) for future in futures]


def test_join_allreduce_barrier_close(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            switch = FakeSwitch(2, loss=0.02)
            sessions = await join_all(server.address, switch)
            array = np.arange(1000, dtype=np.int32)
            for result in await allreduce(sessions, array):
                np.testing.assert_array_equal(result, 2 * array)
            assert all(session.can_multicast for session in sessions)
            gathers = [session.allgather(array + i) for i, session in enumerate(sessions)]
            for gather in gathers:
                blocks = await asyncio.to_thread(gather.result, 60)
                np.testing.assert_array_equal(blocks, [array, array + 1])
            for _ in range(2):
                waits = [asyncio.to_thread(s.barrier, "epoch", 60.0) for s in sessions]
                await asyncio.gather(*waits)
            with pytest.raises(errors.BarrierTimeoutError):
                await asyncio.to_thread(sessions[0].barrier, "lonely", 1.5)
            # Heartbeats of workers that say nothing else renew their leases.
            live = server.membership.live_job("train")
            assert live is not None
            leases = live.leases.values()
            for _ in range(2):
                now_s = asyncio.get_running_loop().time()
                await until(lambda now_s=now_s: all(each.heard_s > now_s for each in leases))
            for result in await allreduce(sessions, array):
                np.testing.assert_array_equal(result, 2 * array)
            await asyncio.gather(*(asyncio.to_thread(s.close) for s in sessions))

    run(scenario())


def test_worker_that_never_joins_is_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path, join_timeout_s=2.0) as (server, _):
            options = SessionOptions(join_timeout_s=60.0)
            with pytest.raises(errors.WorkerArrivalError, match="worker 1 of 2 never arrived"):
                await asyncio.to_thread(join, server.address, FakeSwitch(2), 0, options=options)

    run(scenario())


def test_job_without_room_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            options = SessionOptions(join_timeout_s=60.0, slots_wanted=5000)
            with pytest.raises(errors.JobRefusedError, match="slots"):
                await asyncio.to_thread(join, server.address, FakeSwitch(1), 0, options)

    run(scenario())


def test_controller_restart_while_job_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        fake = FakeP4Runtime()
        await fake.start()
        try:
            config = make_config(tmp_path, fake)
            switch = FakeSwitch(2)
            array = np.ones(500, np.int32)
            async with serving(config) as server:
                sessions = await join_all(server.address, switch)
                address = server.address
            for result in await allreduce(sessions, array):
                np.testing.assert_array_equal(result, 2 * array)
            async with serving(make_config(tmp_path, fake, listen=address)):
                waits = [asyncio.to_thread(s.barrier, "back", 60.0) for s in sessions]
                await asyncio.gather(*waits)
                for result in await allreduce(sessions, array):
                    np.testing.assert_array_equal(result, 2 * array)
                await asyncio.gather(*(asyncio.to_thread(s.close) for s in sessions))
        finally:
            await fake.stop()

    run(scenario())
