# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Watches the fabric and names the jobs that should get other trees, and why."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final

from ..errors import NoTreeError
from ..jobs.job import JobNumber, View, wanted_roots
from ..views.view_trees import planned_trees
from .fabric import Fabric
from .fabric_state import FabricState
from .link_meter import CounterSample, LinkMeter
from .trees.frame_cost import Traffic
from .trees.planner import plan_trees
from .trees.transposed import plan_transposed
from .trees.tree_plan import PredictedCost, TreePlan, predict, tree_directions

_LOGGER = logging.getLogger(__name__)
REPLAN_GAIN: Final = 0.15
"""New trees must be faster by this share: less is within the noise of measured rates."""
REPLAN_SAMPLES: Final = 3
"""Consecutive samples in which they must be faster, so that a short burst moves no job."""
REPLAN_PAUSE_S: Final = 20.0
"""Least time between two changes of one job's trees for the sake of speed."""
SAMPLE_INTERVAL_S: Final = 2.0
CLOSE_INTERVAL_S: Final = 0.5
"""The same after `look_closer`: two samples show a dead link."""
CLOSE_S: Final = 3.0
"""How long one call of it lasts."""

ReplanCallback = Callable[[Collection[JobNumber], str, bool], None]
"""Called with jobs that need other trees, the reason, and whether their trees are broken."""


def is_better(new: PredictedCost, old: PredictedCost) -> bool:
    """Return whether new trees are so much faster that a job should be moved."""
    return new.seconds < old.seconds * (1 - REPLAN_GAIN)


class Replanner:
    """Keeps the measured fabric up to date, and requests other trees for jobs when needed."""

    def __init__(
        self,
        state: FabricState,
        meter: LinkMeter,
        traffic: Traffic,
        *,
        views: Callable[[], list[View]],
        away: Callable[[], Collection[str]],
        replan: ReplanCallback,
    ) -> None:
        self._state = state
        self._meter = meter
        self._traffic = traffic
        self._views = views
        """The views that workers use, one per job."""
        self._away = away
        """Switches that cannot be reached now."""
        self._replan = replan
        self._better_in_turn: dict[JobNumber, int] = {}
        self._moved_s: dict[JobNumber, float] = {}
        self._close_until_s = float("-inf")
        self._is_woken = asyncio.Event()
        state.on_change(self._fabric_changed)

    async def run(self) -> None:
        """Sample until cancelled; first move jobs that an earlier controller has not moved."""
        self._leave_what_is_down("out of use since before the controller started", is_broken=False)
        loop = asyncio.get_running_loop()
        while True:
            await self.step()
            is_close = loop.time() < self._close_until_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_INTERVAL_S if is_close else SAMPLE_INTERVAL_S):
                    await self._is_woken.wait()
            self._is_woken.clear()

    def look_closer(self) -> None:
        """Sample at once, and more often for a time: a job that uses links has no progress."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._close_until_s:
            self._is_woken.set()
        self._close_until_s = now_s + CLOSE_S

    async def step(self) -> CounterSample:
        """Take one sample and act on it."""
        sample = await self._meter.sample()
        self._state.set_usage(self._meter.usage)
        fabric = self._state.fabric
        dead, alive = self._meter.dead_and_alive(fabric)
        for key in dead:
            self._state.mark_dead(fabric.find_link(key))
        for key in alive:
            self._state.mark_alive(fabric.find_link(key))
        self._look_for_better(sample.time_s)
        return sample

    def plan(self, view: View, traffic: Traffic) -> TreePlan:
        """Return the best trees for a view's members now; NoTreeError."""
        fabric = self._state.fabric_for(view.job_number).without(switches=self._away())
        if view.is_transposed:
            return plan_transposed(fabric, view.members, traffic)
        roots = wanted_roots(view.row_servers)
        return plan_trees(fabric, view.members, traffic, tie_break=view.job_number, roots=roots)

    def predict(self, view: View, traffic: Traffic) -> PredictedCost:
        """Return what the view's own trees cost now."""
        fabric = self._state.fabric_for(view.job_number)
        return predict(fabric, planned_trees(view), traffic)

    def _look_for_better(self, now_s: float) -> None:
        due: list[JobNumber] = []
        gains: list[str] = []
        for view in self._on_switches():
            number = view.job_number
            try:
                new, old = self.plan(view, self._traffic), self.predict(view, self._traffic)
            except NoTreeError:
                continue  # the job keeps its trees; broken ones are detected elsewhere
            is_due = is_better(new.prediction, old)
            in_turn = self._better_in_turn.get(number, 0) + 1 if is_due else 0
            self._better_in_turn[number] = in_turn
            has_paused = now_s - self._moved_s.get(number, float("-inf")) >= REPLAN_PAUSE_S
            if in_turn >= REPLAN_SAMPLES and has_paused:
                self._better_in_turn[number] = 0
                self._moved_s[number] = now_s
                due.append(number)
                gains.append(f"{new.label}: {old.seconds / new.seconds:.2f} times as fast")
        for number, gain in zip(due, gains, strict=True):
            self._replan([number], gain, False)
        running = {view.job_number for view in self._on_switches()}
        for kept in (self._better_in_turn, self._moved_s):
            for number in kept.keys() - running:
                del kept[number]

    def _fabric_changed(self, fabric: Fabric, reason: str) -> None:
        """Move the jobs whose trees use what is gone, and others that get better trees."""
        affected = self._leave_what_is_down(reason, is_broken="dead" in reason)
        better: list[JobNumber] = []
        for view in self._on_switches():
            if view in affected:
                continue
            try:
                plan = self.plan(view, self._traffic)
            except NoTreeError:
                continue
            if is_better(plan.prediction, self.predict(view, self._traffic)):
                better.append(view.job_number)
        if better:
            self._replan(better, reason, False)

    def _leave_what_is_down(self, reason: str, *, is_broken: bool) -> list[View]:
        """Move the jobs whose trees use a link or a switch that is out of use; return their views.

        `is_broken`: it carries nothing any more.
        """
        fabric = self._state.fabric
        affected = [x for x in self._on_switches() if _uses_what_is_down(x, fabric)]
        if affected:
            self._replan([view.job_number for view in affected], reason, is_broken)
        return affected

    def _on_switches(self) -> Sequence[View]:
        return [view for view in self._views() if view.trees]


def _uses_what_is_down(view: View, fabric: Fabric) -> bool:
    if fabric.down_switches.intersection(view.switches):
        return True
    down = {end for link in fabric.links if link.key in fabric.down_links for end in link.ends}
    return any(
        (direction.switch, direction.port) in down
        for tree in planned_trees(view)
        for direction in tree_directions(tree)
    )
