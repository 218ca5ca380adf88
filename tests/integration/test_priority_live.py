# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job's priorities from its workers' request to the tables and queues of a real switch."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from controller_fixtures import HOSTS, run, serving
from fake_switch import worker_endpoint
from switchfold import p4src
from switchfold.controller.config import ControllerConfig, SwitchConfig
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.transports.mem import MemTransport
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.p4runtime.service.serve import serve

NUM_WORKERS = 2
ASKED = 4


@dataclass(frozen=True)
class Grant:
    """Queues that the switch has, and the operator's limit; what a job that asks for 4 gets."""

    queues: int
    limit: int
    granted: int


def join(address: str, switch: Switch, worker_id: int) -> Session:
    port = switch.ports.mem_port(worker_id + 1)
    return Session.join(
        controller=address,
        job="train",
        worker_id=worker_id,
        num_workers=NUM_WORKERS,
        transport=MemTransport(port, worker_endpoint(worker_id)),
        options=SessionOptions(
            timeout_s=120.0, insecure=True, max_priority=ASKED, ingress_port=worker_id + 1
        ),
    )


def check_sums(sessions: list[Session]) -> None:
    """Sum floats in blocks, which have exponents, with all priorities that were asked for."""
    array = (np.arange(5000) % 100).astype(np.float32)
    futures = [
        [session.allreduce(array, precision="block", priority=priority) for session in sessions]
        for priority in (0, ASKED - 1, 1, 0, ASKED - 2)
    ]
    for each in futures:
        for future in each:
            np.testing.assert_array_equal(future.result(60), NUM_WORKERS * array)


@pytest.mark.parametrize("grant", [Grant(8, 7, 4), Grant(2, 7, 1), Grant(8, 0, 0)], ids=str)
def test_priorities_of_a_job_are_granted_installed_and_used(tmp_path: Path, grant: Grant) -> None:
    """A packet above the switch's queues would be dropped, and counted."""

    compile_program(p4src.artefacts("narrow").json)  # a compiler takes longer than a client waits

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            switch = stack.enter_context(Switch(priority_queues=grant.queues))
            for number in range(NUM_WORKERS):
                switch.ports.add(number + 1, "mem")
            served = stack.enter_context(serve(switch, address="127.0.0.1:0"))
            switch.start()
            at = SwitchConfig(
                name="s1", address=served.address, hosts=HOSTS, priority_queues=grant.queues
            )
            config = ControllerConfig(
                switches=(at,),
                insecure=True,
                listen="127.0.0.1:0",
                database=tmp_path / "controller.sqlite3",
                lease_s=60.0,
                connect_timeout_s=60.0,
                max_priority=grant.limit,
            )
            server = await stack.enter_async_context(serving(config))
            joins = (
                asyncio.to_thread(join, server.address, switch, number)
                for number in range(NUM_WORKERS)
            )
            sessions = await asyncio.gather(*joins)
            (placement,) = server.views.placements("s1")
            assert placement.view.max_priority == grant.granted
            assert not await server.links["s1"].apply(), "what was written reads back the same"
            assert {session.view.max_priority for session in sessions} == {grant.granted}
            await asyncio.to_thread(check_sums, sessions)
            for number in range(NUM_WORKERS):
                assert switch.ports.statistics(number + 1)["dropped_priority"] == 0
            await asyncio.gather(*(asyncio.to_thread(session.close) for session in sessions))

    run(scenario())
