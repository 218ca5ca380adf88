# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of jobs: planned against slot memory, installed on switches, removed again."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from controller.config import ControllerConfig
from controller.database import Database
from controller.errors import InvalidJobError, NoRoomError, SwitchError
from controller.job import (
    Job,
    JobState,
    Layout,
    LayoutState,
    PathChoice,
    Placement,
    Tree,
    TreeId,
    Worker,
)
from controller.jobs import FEWEST_SLOTS, SlotMemory, no_room_error
from controller.outcome import Count
from controller.shares import Demand, fair_shares
from controller.switch_link import LinkState, SwitchLink
from controller.tree_shape import one_switch_tree
from hostlib import wire

_LOGGER = logging.getLogger(__name__)
_HEADROOM: Final = 8
"""One part in so many of a switch's slots is not shared out, so that a new layout finds room beside
the one that it replaces."""
_LEAST_CHANGE: Final = 8
"""A job is not disturbed for a change of its slots by less than one part in so many."""

Shapes = Callable[[Sequence[Worker], Collection[str]], tuple[Tree, ...]]
"""Trees without slots for these members, avoiding switches and links; NoRoomError when there are
none."""
LayoutsCallback = Callable[[str, list[Layout]], None]
"""Called with a switch and the installed layouts that it concerns."""


class Layouts:
    """Gives jobs trees, slots and generations, and brings them onto the switches."""

    def __init__(
        self,
        config: ControllerConfig,
        database: Database,
        links: Mapping[str, SwitchLink],
        *,
        shapes: Shapes = one_switch_tree,
        num_slots: int = wire.NUM_SLOTS,
    ) -> None:
        self._config = config
        self._database = database
        self._links = links
        self._shapes = shapes
        self._num_slots = num_slots
        self._on_lost_state: LayoutsCallback | None = None
        self._on_gone: LayoutsCallback | None = None
        for name, link in links.items():
            link.on_lost_state = lambda trees, name=name: self._lost_state(name, trees)
            link.on_gone = lambda name=name: self._gone(name)

    def on_switch_lost_state(self, callback: LayoutsCallback) -> None:
        """Have `callback` called when a switch came back without the entries of these layouts.

        The entries are there again by then; what its slots held is lost.
        """
        self._on_lost_state = callback

    def on_switch_gone(self, callback: LayoutsCallback) -> None:
        """Have `callback` called when a switch has been out of reach for `switch_gone_s`."""
        self._on_gone = callback

    def plan(
        self,
        job: Job,
        members: Iterable[Worker],
        *,
        avoid: Collection[str] = (),
        replacing: Layout | None = None,
    ) -> Layout:
        """Lease slots for a new layout of these members and store it as planned.

        `avoid` names switches and links not to be used. `replacing` is a layout that no worker
        sends in any more: its slots may be used again at once. Without room the layout runs between
        the hosts if the job allows that; else NoRoomError says what would fit. The caller installs
        the layout, or removes it.
        """
        workers = tuple(sorted(members, key=lambda worker: worker.worker_id))
        trees: tuple[Tree, ...] = ()
        reason = "asked for"
        if job.path is not PathChoice.HOST:
            try:
                trees, reason = self._trees(job, workers, avoid, replacing)
            except NoRoomError as exc:
                if job.path is PathChoice.SWITCH or not _have_peers(workers):
                    raise
                reason = str(exc)
        elif not _have_peers(workers):
            alone = next(w.worker_id for w in workers if not w.peer_port)
            raise InvalidJobError(
                f"job {job.name!r} is to run between the hosts, but worker {alone} has no peer "
                "server; start one, or choose another path"
            )
        layout = Layout(
            generation=self._database.allocate_generation(),
            job_number=job.job_number,
            members=workers,
            trees=self._with_ids(trees),
            straggler=job.straggler,
            reason=reason,
        )
        self._database.store_layout(layout)
        return layout

    async def install(self, layout: Layout) -> Layout:
        """Bring the layout's entries onto all its switches; SwitchError takes it off again."""
        layout = self._store(layout, LayoutState.INSTALLED)
        try:
            await asyncio.gather(*(self._links[name].apply() for name in layout.switches))
        except SwitchError:
            await self.remove(layout)
            raise
        return layout

    async def remove(self, layout: Layout) -> Layout:
        """Keep the layout's counters, free its slots, take its entries off its switches.

        A switch that is out of reach loses them when it is back.
        """
        stored = self._database.layout(layout.generation)
        if stored is None or stored.state is LayoutState.REMOVED:
            return stored or layout
        if stored.state is LayoutState.INSTALLED:
            await asyncio.gather(*(self._keep_counts(stored, name) for name in stored.switches))
        removed = self._store(stored, LayoutState.REMOVED)
        if stored.state is LayoutState.INSTALLED:
            await asyncio.gather(*(self._clear(name) for name in removed.switches))
        return removed

    async def job_counts(self, job: Job) -> dict[str, dict[wire.Outcome, Count]]:
        """Return a job's counters by switch and outcome, over all its layouts.

        SwitchError when a switch of an installed layout cannot be asked.
        """
        counts = self._database.counts(job.job_number)
        for layout in job.live_layouts:
            if layout.state is LayoutState.INSTALLED:
                for name in layout.switches:
                    for placement in layout.placements(name):
                        read = await self._links[name].read_tree_counts(placement.tree.tree_id)
                        _add(counts.setdefault(name, {}), read)
        return counts

    def rebalance(self) -> list[Job]:
        """Return the running jobs that should get a new layout now, those that shrink first.

        Plan, change over and ask again until nobody is named: what one job gives up becomes free
        when its old layout has been removed.
        """
        jobs = self._database.jobs(is_live_only=True)
        settled = [
            job
            for job in jobs
            if job.state is JobState.RUNNING and len(job.live_layouts) == 1 and job.layout
        ]
        memory = self._memory()
        wishes = [self._wish(job, memory, jobs) for job in settled]
        shrinking = [job for job, change in zip(settled, wishes, strict=True) if change < 0]
        growing = [job for job, change in zip(settled, wishes, strict=True) if change > 0]
        return shrinking + growing

    def placements(self, switch: str) -> list[Placement]:
        """Return what the installed layouts hold on a switch, oldest first."""
        return [
            placement
            for layout in self._database.live_layouts()
            if layout.state is LayoutState.INSTALLED
            for placement in layout.placements(switch)
        ]

    def _trees(
        self,
        job: Job,
        workers: tuple[Worker, ...],
        avoid: Collection[str],
        replacing: Layout | None,
    ) -> tuple[tuple[Tree, ...], str]:
        """Return trees with slots, and why they have fewer than wished."""
        shape = self._shape(workers, avoid)
        memory = self._memory(without=replacing)
        jobs = self._database.jobs(is_live_only=True)
        wanted = job.slots_wanted or self._config.default_slots
        count = wanted
        if not job.slots_wanted:
            count = self._elastic_slots(job, shape, memory, jobs)
        trees = memory.place(shape, count) if count >= FEWEST_SLOTS else None
        if trees is None:
            names = {other.job_number: other.name for other in jobs}
            raise no_room_error(job, shape, wanted, memory, names)
        reason = "" if count >= wanted else f"{count} of {wanted} slots are its share for now"
        return trees, reason

    def _elastic_slots(
        self, job: Job, shape: tuple[Tree, ...], memory: SlotMemory, jobs: list[Job]
    ) -> int:
        """Return how many slots a job that asked for no number gets now."""
        target = self._targets(jobs, {job.job_number: shape})[job.job_number]
        # Who shrinks for this job needs room for its smaller layout beside the larger one.
        targets = self._targets(jobs, {job.job_number: shape})
        switches = {node.switch for tree in shape for node in tree.nodes}
        leave = 0
        for other in jobs:
            layout = other.layout
            if other.job_number == job.job_number or layout is None or other.slots_wanted:
                continue
            share = targets.get(other.job_number, layout.slot_count)
            if switches & set(layout.switches) and layout.slot_count > share:
                leave = max(leave, share)
        most = memory.most_slots(shape, min(target + leave, self._num_slots * len(shape)))
        return min(target, max(most - leave, min(most, FEWEST_SLOTS * len(shape))))

    def _targets(
        self, jobs: Iterable[Job], shapes: Mapping[int, tuple[Tree, ...]]
    ) -> dict[int, int]:
        """Return the fair share of every job that asked for no number, by job number."""
        capacity: dict[str, int] = {}
        demands: list[Demand] = []
        for job in jobs:
            layout = job.layout
            shape = shapes.get(job.job_number) or (layout.trees if layout else ())
            if not shape:
                continue
            usage: dict[str, float] = {}
            for tree in shape:
                for node in tree.nodes:
                    usage[node.switch] = usage.get(node.switch, 0.0) + 1 / len(shape)
            for switch in usage:
                capacity.setdefault(switch, self._num_slots - self._num_slots // _HEADROOM)
            if job.slots_wanted:
                for switch, part in usage.items():
                    capacity[switch] -= int(part * job.slots_wanted)
            else:
                limit = self._config.default_slots
                demands.append(Demand(job.job_number, job.weight, limit, usage))
        shares = fair_shares(demands, {name: max(n, 0) for name, n in capacity.items()})
        fewest = {d.key: FEWEST_SLOTS for d in demands}
        return {key: max(share, fewest[key]) for key, share in shares.items()}

    def _wish(self, job: Job, memory: SlotMemory, jobs: list[Job]) -> int:
        """Return by how many slots a running job should change; 0 to leave it alone."""
        layout = job.layout
        assert layout is not None
        if job.path is PathChoice.HOST:
            return 0
        if not layout.is_on_switch:
            try:
                return sum(t.slot_count for t in self._trees(job, layout.members, (), None)[0])
            except NoRoomError:
                return 0
        if job.slots_wanted:
            return 0
        homeless = self._homeless(jobs)
        target = self._targets(jobs, homeless)[job.job_number]
        now = self._elastic_slots(job, layout.trees, memory, jobs)
        held = layout.slot_count
        if held > target and now >= FEWEST_SLOTS * len(layout.trees):
            return target - held if homeless or held - target >= held // _LEAST_CHANGE else 0
        return now - held if now - held > held // _LEAST_CHANGE else 0

    def _homeless(self, jobs: list[Job]) -> dict[int, tuple[Tree, ...]]:
        """Return the trees that running jobs between the hosts would have, by job number."""
        shapes: dict[int, tuple[Tree, ...]] = {}
        for job in jobs:
            layout = job.layout
            if layout is None or layout.is_on_switch or job.path is PathChoice.HOST:
                continue
            try:
                shapes[job.job_number] = self._shape(layout.members, ())
            except NoRoomError:
                continue
        return shapes

    def _shape(self, workers: tuple[Worker, ...], avoid: Collection[str]) -> tuple[Tree, ...]:
        away = {n for n, link in self._links.items() if link.state is not LinkState.READY}
        return self._shapes(workers, away | set(avoid))

    def _memory(self, without: Layout | None = None) -> SlotMemory:
        left_out = without.generation if without else None
        layouts = self._database.live_layouts()
        return SlotMemory((x for x in layouts if x.generation != left_out), self._num_slots)

    def _with_ids(self, trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
        used = {tree.tree_id for x in self._database.live_layouts() for tree in x.trees}
        numbered: list[Tree] = []
        for tree in trees:
            tree_id = self._database.allocate_tree_id(used)
            used.add(tree_id)
            numbered.append(dataclasses.replace(tree, tree_id=tree_id))
        return tuple(numbered)

    def _store(self, layout: Layout, state: LayoutState) -> Layout:
        # The stored one knows which members have left meanwhile.
        stored = self._database.layout(layout.generation) or layout
        layout = dataclasses.replace(stored, state=state)
        self._database.store_layout(layout)
        return layout

    async def _keep_counts(self, layout: Layout, name: str) -> None:
        try:
            for placement in layout.placements(name):
                counts = await self._links[name].read_tree_counts(placement.tree.tree_id)
                self._database.add_counts(layout.job_number, name, counts)
        except (KeyError, SwitchError) as exc:
            _LOGGER.warning("job number %d: counters not kept: %s", layout.job_number, exc)

    async def _clear(self, name: str) -> None:
        link = self._links.get(name)
        if link is None:
            return
        try:
            await link.apply()
        except SwitchError as exc:
            _LOGGER.warning("switch %s: entries go when it is back: %s", name, exc)

    def _lost_state(self, name: str, trees: frozenset[TreeId]) -> None:
        layouts = [p.layout for p in self.placements(name) if p.tree.tree_id in trees]
        if layouts and self._on_lost_state is not None:
            self._on_lost_state(name, list(dict.fromkeys(layouts)))

    def _gone(self, name: str) -> None:
        layouts = [placement.layout for placement in self.placements(name)]
        if layouts and self._on_gone is not None:
            self._on_gone(name, list(dict.fromkeys(layouts)))


def _have_peers(workers: tuple[Worker, ...]) -> bool:
    return all(worker.peer_port for worker in workers)


def _add(total: dict[wire.Outcome, Count], more: Mapping[wire.Outcome, Count]) -> None:
    for outcome, count in more.items():
        before = total.get(outcome, Count(0, 0))
        total[outcome] = Count(before.packets + count.packets, before.num_bytes + count.num_bytes)
