# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Measured links: rates, traffic by job, dead links, and the planning of other trees."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

import pytest

from planning_fabrics import MBIT, attach_all, leaf_spine
from switchfold.controller.config import ControllerConfig
from switchfold.controller.database.database import Database
from switchfold.controller.errors import SwitchUnreachableError
from switchfold.controller.fabric.fabric import Direction, Fabric
from switchfold.controller.fabric.fabric_state import Condition, FabricState
from switchfold.controller.fabric.link_meter import CounterSample, LinkMeter
from switchfold.controller.fabric.replanner import CLOSE_INTERVAL_S, REPLAN_SAMPLES, Replanner
from switchfold.controller.fabric.trees.frame_cost import Traffic
from switchfold.controller.fabric.trees.planner import plan_trees
from switchfold.controller.fabric.trees.tree_plan import tree_directions
from switchfold.controller.jobs.job import JobNumber, Tree, View, Worker
from switchfold.controller.tables.outcome import Count
from switchfold.controller.views.tree_shape import tree_shape
from switchfold.controller.views.view_trees import planned_trees
from switchfold.hostlib.slots.wire import Outcome

TRAFFIC = Traffic(tensor_bytes=1 << 20, values_per_packet=352)
FRAME = TRAFFIC.frame_bytes


class CountingSwitch:
    """Counters of one switch, moved by the test."""

    def __init__(self, ports: Collection[int]) -> None:
        self.is_away = False
        self.ports = {port: [[0, 0], [0, 0]] for port in ports}
        self.rounds: dict[int, int] = defaultdict(int)

    async def read_port_counts(self) -> dict[int, tuple[Count, Count]]:
        if self.is_away:
            raise SwitchUnreachableError("away")
        return {p: (Count(*both[0]), Count(*both[1])) for p, both in self.ports.items()}

    async def read_tree_counts(self, tree_id: int) -> dict[Outcome, Count]:
        if self.is_away:
            raise SwitchUnreachableError("away")
        return {Outcome.COMPLETED: Count(self.rounds[tree_id], 0)}


class Bench:
    """Two leaves, two spines, one worker per leaf, one job, a clock moved by hand."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config: ControllerConfig = leaf_spine(2, 2, 1, uplink_rate=50 * MBIT)
        self.fabric = Fabric.of(self.config)
        self.database = Database(folder / "state.sqlite3")
        self.state = FabricState(self.config, self.database)
        self.switches = {
            s.name: CountingSwitch([*self.fabric.link_ports(s.name), *(h.port for h in s.hosts)])
            for s in self.config.switches
        }
        self.view = self.make_view(avoid="s4")
        self.views: list[View] = []
        self.asked: list[tuple[list[JobNumber], str, bool]] = []
        self.meter = LinkMeter(self.switches, lambda: self.views, FRAME)
        self.replanner = Replanner(
            self.state,
            self.meter,
            TRAFFIC,
            views=lambda: self.views,
            away=lambda: {name for name, switch in self.switches.items() if switch.is_away},
            replan=lambda jobs, why, is_broken: self.asked.append((list(jobs), why, is_broken)),
        )
        self.now_s = 100.0

        def clock(loop: asyncio.BaseEventLoop) -> float:
            return self.now_s

        monkeypatch.setattr(asyncio.BaseEventLoop, "time", clock)

    def make_view(self, *, avoid: str = "", generation: int = 1) -> View:
        workers = [
            Worker(worker_id=at.worker_id, switch=at.switch, port=at.port, address="10.0.0.1",
                   mac="02:00:00:00:00:01", udp_port=1)
            for at in attach_all(self.config)
        ]  # fmt: skip
        plan = plan_trees(self.fabric.without(switches={avoid} - {""}), workers, TRAFFIC)
        trees: list[Tree] = []
        for tree_id, tree in enumerate(plan.trees, 10 * generation):
            shape = tree_shape(tree, workers, self.fabric.switches)
            trees.append(dataclasses.replace(shape, tree_id=tree_id, slot_count=64))
        return View(
            generation=generation, job_number=generation, members=tuple(workers), trees=tuple(trees)
        )

    def step(self) -> None:
        self.now_s += 2.0
        asyncio.run(self.replanner.step())

    def send(self, direction: Direction, frames: int, *, is_lost: bool = False) -> None:
        """Count frames where they leave a switch and, unless lost, where they arrive."""
        amounts = (frames, frames * FRAME)
        counters = self.switches[direction.switch].ports[direction.port]
        ends = [counters[0 if direction.is_inward else 1]]
        link = self.fabric.link_at(direction.switch, direction.port)
        if link is not None and not is_lost:
            far = link.ends[1] if link.ends[0] == direction[:2] else link.ends[0]
            ends.append(self.switches[far[0]].ports[far[1]][0])
        for end in ends:
            end[0] += amounts[0]
            end[1] += amounts[1]

    def run_rounds(self, view: View, rounds: int) -> None:
        """Let every tree of the view complete so many rounds."""
        for tree, planned in zip(view.trees, planned_trees(view), strict=True):
            self.switches[planned.root.switch].rounds[tree.tree_id] += rounds
            for direction in tree_directions(planned):
                self.send(direction, rounds)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bench = Bench(tmp_path, monkeypatch)
    yield bench
    bench.database.close()


def test_own_traffic_does_not_count_against_a_job(bench: Bench):
    bench.step()
    bench.views = [bench.view]
    bench.step()
    up = Direction("s1", 2)
    other = Direction("s1", 3)
    for _ in range(20):
        bench.run_rounds(bench.view, 5000)
        bench.send(other, 1000)
        bench.step()
    own_rate, other_rate = 5000 * FRAME * 4, 1000 * FRAME * 4
    assert bench.state.fabric.residual(up) == pytest.approx(50 * MBIT - own_rate, rel=0.01)
    mine = bench.state.fabric_for(bench.view.job_number)
    assert mine.residual(up) == pytest.approx(50 * MBIT, rel=0.01)
    assert mine.residual(other) == pytest.approx(50 * MBIT - other_rate, rel=0.01)


def test_expected_and_measured_bytes_since_the_view_began(bench: Bench):
    bench.send(Direction("s1", 2), 77)
    bench.step()
    bench.views = [bench.view]
    bench.run_rounds(bench.view, 100)
    bench.send(Direction("s1", 2), 1)
    bench.step()
    assert bench.meter.last is not None
    expected, measured = bench.meter.measured(bench.view, bench.meter.last)
    assert set(expected.values()) == {100.0 * FRAME}
    assert measured.pop(Direction("s1", 2)) == 101.0 * FRAME
    assert set(measured.values()) == {100.0 * FRAME}


def test_stall_lets_links_be_sampled_at_once_and_more_often(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    sampled_s: list[float] = []
    sample = bench.meter.sample

    async def note() -> CounterSample:
        sampled_s.append(bench.now_s)
        return await sample()

    async def settle() -> None:
        for _ in range(1000):  # turns of the loop, whose clock is moved by hand
            await asyncio.sleep(0)

    monkeypatch.setattr(bench.meter, "sample", note)

    async def scenario() -> None:
        task = asyncio.create_task(bench.replanner.run())
        await settle()
        bench.now_s += 0.1
        bench.replanner.look_closer()
        await settle()
        bench.replanner.look_closer()
        await settle()
        bench.now_s += CLOSE_INTERVAL_S
        await settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert sampled_s == [100.0, 100.1, 100.1 + CLOSE_INTERVAL_S]


def test_dead_link_is_found_and_its_jobs_are_moved(bench: Bench):
    bench.views = [bench.view]
    link = bench.fabric.find_link("s1-s3")
    bench.step()
    for _ in range(2):
        assert bench.state.condition(link) is Condition.UP
        bench.send(Direction("s1", 2), 100, is_lost=True)
        bench.step()
    assert bench.state.condition(link) is Condition.DEAD
    assert bench.asked == [([1], "link s1-s3 is dead: frames enter it and none arrive", True)]
    bench.send(Direction("s1", 2), 3)
    bench.step()
    assert bench.state.condition(link) is Condition.UP


def test_frames_in_the_other_direction_revive_a_link_after_a_time(bench: Bench):
    link = bench.fabric.find_link("s1-s3")

    def die() -> None:
        for _ in range(2):
            bench.send(Direction("s1", 2), 100, is_lost=True)
            bench.step()
        assert bench.state.condition(link) is Condition.DEAD

    def revive_after(seconds: float) -> None:
        """`step` takes 2 s."""
        for _ in range(round(seconds / 2) - 1):
            bench.send(Direction("s3", 1), 100)
            bench.step()
            assert bench.state.condition(link) is Condition.DEAD
        bench.send(Direction("s3", 1), 100)
        bench.step()
        assert bench.state.condition(link) is Condition.UP

    bench.step()
    die()
    revive_after(10)
    die()
    revive_after(20)
    bench.send(Direction("s1", 2), 3)
    bench.step()
    die()
    revive_after(10)


def test_few_lost_frames_and_unread_switches_kill_no_link(bench: Bench):
    bench.step()
    for _ in range(4):
        bench.send(Direction("s1", 2), 5, is_lost=True)
        bench.switches["s4"].is_away = True
        bench.send(Direction("s1", 3), 500, is_lost=True)
        bench.step()
    assert {bench.state.condition(link) for link in bench.config.links} == {Condition.UP}


def test_job_is_moved_when_another_tree_stays_faster(bench: Bench):
    bench.views = [bench.make_view(avoid="s4")]
    for _ in range(REPLAN_SAMPLES - 1):
        bench.step()
        assert not bench.asked
    bench.step()
    ((jobs, why, is_broken),) = bench.asked
    assert (jobs, is_broken) == ([1], False)
    assert why == "2 trees, roots s3 and s4: 1.99 times as fast"
    for _ in range(5):
        bench.step()
    assert len(bench.asked) == 1, "it is not moved again for a while"


def test_good_trees_stay(bench: Bench):
    bench.views = [bench.make_view()]
    for _ in range(10):
        bench.run_rounds(bench.views[0], 4000)
        bench.step()
    assert not bench.asked


def test_operator_moves_jobs_off_a_link_and_back(bench: Bench):
    bench.views = [bench.make_view()]
    bench.state.set_link("s1-s3", is_up=False)
    assert bench.asked == [([1], "link s1-s3 is down", False)]
    bench.views = [bench.make_view(avoid="s3")]
    bench.state.set_link("s1-s3", is_up=True)
    assert bench.asked[1:] == [([1], "link s1-s3 is up", False)]


def test_jobs_on_a_closed_link_are_moved_when_a_controller_starts(bench: Bench):
    """The one before was killed between storing that the link is closed and moving them."""
    bench.state.set_link("s1-s3", is_up=False)
    bench.views = [bench.view]
    assert bench.asked == []

    async def begin() -> None:
        task = asyncio.create_task(bench.replanner.run())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(begin())
    assert bench.asked == [([1], "out of use since before the controller started", False)]
