# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views over three real switches: installed, read back, refilled after a restart, removed."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from controller_fixtures import run, serving
from planned_trees import leaf_spine, worker_at
from switch_process import DEADLINE_S, switch_command, target
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.controller.config import ControllerConfig
from switchfold.controller.jobs.job import Job, View
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.server import ControllerServer
from switchfold.controller.switches.switch_session import LinkState
from switchfold.controller.tables.outcome import TREE_OUTCOMES, Count
from time_bound import until

MEMBERS = [worker_at(n, f"l{n // 2 + 1}", n % 2 + 1) for n in range(4)]
TARGETS = [pytest.param("bmv2", marks=pytest.mark.bmv2), "softswitch"]


@asynccontextmanager
async def three_switches(name: str, addresses: dict[str, str]) -> AsyncGenerator[AsyncExitStack]:
    """Run two leaves and a spine; the stack that is handed out ends the spine."""
    async with AsyncExitStack() as stack:
        for switch in ("l1", "l2"):
            address = addresses[switch]
            await stack.enter_async_context(target(switch_command(name, address), address))
        spine = await stack.enter_async_context(AsyncExitStack())
        address = addresses["p1"]
        await spine.enter_async_context(target(switch_command(name, address), address))
        yield spine


async def start(server: ControllerServer) -> tuple[Job, View]:
    database = server._database  # pyright: ignore[reportPrivateUsage]
    job = database.create_job(JobRequest(name="train", num_workers=len(MEMBERS), slots_wanted=64))
    view = await server.views.install(server.views.plan(job, MEMBERS))
    return database.start_job(job.job_number), view


@pytest.mark.parametrize("name", TARGETS)
def test_targets_hold_a_tree_together(tmp_path: Path, name: str):
    async def scenario() -> None:
        switches, links = leaf_spine(2, 1)
        addresses = {switch.name: f"127.0.0.1:{free_port()}" for switch in switches}
        config = ControllerConfig(
            switches=tuple(dataclasses.replace(s, address=addresses[s.name]) for s in switches),
            links=tuple(links),
            insecure=True,
            listen="127.0.0.1:0",
            database=tmp_path / "controller.sqlite3",
            connect_timeout_s=DEADLINE_S,
        )
        async with three_switches(name, addresses) as spine, serving(config) as server:
            lost: list[tuple[str, list[View]]] = []
            server.views.on_switch_lost_state(lambda name, what: lost.append((name, what)))
            job, view = await start(server)
            assert set(view.switches) == set(addresses)
            for link in server.links.values():
                assert not await link.apply(), "what is read back is what was written"
            counts = await server.views.job_counts(job)
            zeros = dict.fromkeys(TREE_OUTCOMES, Count(0, 0))
            assert counts == dict.fromkeys(addresses, zeros)

            await spine.aclose()
            link = server.links["p1"]
            await until(lambda: link.state is not LinkState.READY)
            async with target(switch_command(name, addresses["p1"]), addresses["p1"]):
                await until(lambda: bool(lost))
                assert [(switch, what) for switch, what in lost] == [("p1", [view])]
                assert not await link.apply()
                await server.views.remove(view)
                assert not await link.apply()

    run(scenario())
