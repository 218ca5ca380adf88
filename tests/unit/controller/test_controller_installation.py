# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views on switches: entries of a tree on each, counters, switches that restart or go away."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from controller_fixtures import fake_switch, run
from fake_p4runtime import FakeP4Runtime
from fake_program import write_program
from planned_trees import leaf_spine, worker_at
from switchfold.controller.config import ControllerConfig
from switchfold.controller.database.database import Database
from switchfold.controller.errors import SwitchUpdateError
from switchfold.controller.jobs.job import Job, View, ViewState
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.leadership.leader import FileLeader
from switchfold.controller.switches.program import load_program
from switchfold.controller.switches.switch_session import DesiredState, LinkState, SwitchSession
from switchfold.controller.tables.outcome import TREE_OUTCOMES
from switchfold.controller.views.join_reply import QUORUM_DEADLINE_S, encode_view
from switchfold.controller.views.views import Views
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.straggler import StragglerPolicy
from time_bound import until

MEMBERS = [worker_at(n, f"l{n // 2 + 1}", n % 2 + 1) for n in range(4)]


class Site:
    """Two leaves and a spine without data planes, and views over them."""

    def __init__(self, folder: Path, fakes: dict[str, FakeP4Runtime]) -> None:
        self.fakes = fakes
        switches, links = leaf_spine(2, 1)
        self.config = ControllerConfig(
            switches=tuple(dataclasses.replace(s, address=fakes[s.name].address) for s in switches),
            links=tuple(links),
            switch_gone_s=0.3,
        )
        self.database = Database(folder / "state.sqlite3")
        program = load_program("narrow", write_program(folder))
        self.links = {
            switch.name: SwitchSession(
                switch,
                program,
                self.config,
                FileLeader(self.database, self.config.election_id),
                DesiredState(placements=lambda name=switch.name: self.views.placements(name)),
            )
            for switch in self.config.switches
        }
        self.views = Views(self.config, self.database, self.links)
        self.lost: list[tuple[str, list[View]]] = []
        self.gone: list[tuple[str, list[View]]] = []
        self.views.on_switch_lost_state(lambda switch, views: self.lost.append((switch, views)))
        self.views.on_switch_gone(lambda switch, views: self.gone.append((switch, views)))

    async def start(self) -> Job:
        job = self.database.create_job(
            JobRequest(
                name="train",
                num_workers=len(MEMBERS),
                straggler=StragglerPolicy(quorum=3),
                slots_wanted=64,
            )
        )
        await self.views.install(self.views.plan(job, MEMBERS))
        return self.database.start_job(job.job_number)

    def entries(self) -> dict[str, int]:
        return {name: sum(fake.tables().values()) for name, fake in self.fakes.items()}

    def count(self, switch: str, packets: int) -> None:
        """Let a switch have counted packets of every outcome entry."""
        for name, entity in self.fakes[switch].entities.items():
            entry = entity.table_entry
            if len(entry.match) == 2 and not entry.action.action.params:
                self.fakes[switch].counters[name] = packets


@asynccontextmanager
async def site(folder: Path) -> AsyncGenerator[Site]:
    async with AsyncExitStack() as stack:
        names = [switch.name for switch in leaf_spine(2, 1)[0]]
        fakes = {name: await stack.enter_async_context(fake_switch()) for name in names}
        site = Site(folder, fakes)
        tasks = [asyncio.create_task(link.run()) for link in site.links.values()]
        try:
            await asyncio.gather(*(link.wait_ready(60) for link in site.links.values()))
            yield site
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            site.database.close()


def of_tree(num_children: int, *, is_inner: bool) -> int:
    """Entities of a tree at one switch: group, admission, children, addresses, outcomes."""
    return 1 + 1 + 2 * num_children + is_inner + len(TREE_OUTCOMES)


def test_tree_is_installed_on_all_its_switches_and_removed(tmp_path: Path):
    async def scenario() -> None:
        async with site(tmp_path) as here:
            routes = here.entries()
            job = await here.start()
            assert job.view is not None
            inner = [n.switch for n in job.view.trees[0].nodes if n.parent is not None]
            added = {name: number - routes[name] for name, number in here.entries().items()}
            children = {n.switch: len(n.children) for n in job.view.trees[0].nodes}
            assert added == {
                name: of_tree(children[name], is_inner=name in inner) for name in children
            }
            assert len(children) == 3
            tree = job.view.trees[0]
            assert [tree.level(node) for node in tree.nodes] == [1, 0, 0]
            # What an inner switch holds for a late worker must still count for the quorum.
            message = encode_view(job.view, MEMBERS[0], here.links)
            assert (message.quorum, message.deadline_s) == (3, QUORUM_DEADLINE_S)
            second = await here.views.install(here.views.plan(job, MEMBERS[:3]))
            assert second.trees[0].nodes[0].slot_base == 64, "both views lie side by side"
            assert second.quorum == 3
            await here.views.remove(job.view)
            await here.views.remove(second)
            assert here.entries() == routes
            assert here.database.live_views() == []

    run(scenario())


def test_counters_are_summed_over_views_and_switches(tmp_path: Path):
    async def scenario() -> None:
        async with site(tmp_path) as here:
            job = await here.start()
            assert job.view is not None
            here.count("l1", 5)
            here.count("p1", 1)
            second = await here.views.install(here.views.plan(job, MEMBERS))
            await here.views.remove(job.view)
            here.fakes["l1"].counters.clear()
            here.count("l1", 2)
            job = here.database.job(job.job_number)
            counts = await here.views.job_counts(job)
            spoofed = {name: c[Outcome.FOREIGN_RESULT].packets for name, c in counts.items()}
            assert spoofed == {"l1": 7, "l2": 0, "p1": 1}
            await here.views.remove(second)
            job = here.database.end_job(job.job_number, "done")
            counts = await here.views.job_counts(job)
            assert counts["l1"][Outcome.BAD_CONTRIBUTION].packets == 7

    run(scenario())


def test_switch_that_restarts_empty_is_refilled_and_reported(tmp_path: Path):
    async def scenario() -> None:
        async with site(tmp_path) as here:
            job = await here.start()
            full = here.entries()
            fake, link = here.fakes["p1"], here.links["p1"]
            await fake.stop()
            await until(lambda: link.state is not LinkState.READY)
            fake.restart_empty()
            await fake.start(int(fake.address.rpartition(":")[2]))
            await until(lambda: bool(here.lost))
            assert here.entries() == full, "the entries are there again when the callback runs"
            ((switch, views),) = here.lost
            assert switch == "p1"
            assert [view.generation for view in views] == [job.generation]

            # A connection that breaks is no loss: the switch kept everything.
            leaf = here.fakes["l1"]
            await leaf.stop()
            await until(lambda: here.links["l1"].state is not LinkState.READY)
            await leaf.start(int(leaf.address.rpartition(":")[2]))
            await until(lambda: here.links["l1"].state is LinkState.READY)
            assert len(here.lost) == 1

    run(scenario())


def test_switch_out_of_reach_is_reported_after_its_time(tmp_path: Path):
    async def scenario() -> None:
        async with site(tmp_path) as here:
            job = await here.start()
            ready: list[str] = []
            here.views.on_switch_ready(ready.append)
            await here.fakes["l2"].stop()
            await until(lambda: bool(here.gone))
            ((switch, views),) = here.gone
            assert (switch, views[0].generation) == ("l2", job.generation)
            # The view goes from the others; the switch loses it when it is back.
            await here.views.remove(views[0])
            assert here.entries()["l1"] < here.entries()["l2"]
            await here.fakes["l2"].start(int(here.fakes["l2"].address.rpartition(":")[2]))
            await until(lambda: here.links["l2"].state is LinkState.READY)
            assert here.entries()["l1"] == here.entries()["l2"]
            assert not here.lost
            assert ready == ["l2"]

    run(scenario())


def test_view_that_a_switch_refuses_is_taken_off_the_others(tmp_path: Path):
    async def scenario() -> None:
        async with site(tmp_path) as here:
            before = here.entries()
            here.fakes["p1"].refuse_writes = True
            with pytest.raises(SwitchUpdateError, match="table is full"):
                await here.start()
            here.fakes["p1"].refuse_writes = False
            assert here.entries() == before
            (job,) = here.database.jobs()
            assert [view.state for view in job.views] == [ViewState.REMOVED]

    run(scenario())
