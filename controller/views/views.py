# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views of jobs: planned against slot memory, installed on switches, removed again."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from ...hostlib.slots import wire
from ..config import ControllerConfig
from ..database.database import Database
from ..errors import InvalidJobError, NoRoomError, NoTreeError, SwitchError
from ..fabric.fabric import Fabric
from ..jobs.job import (
    Job,
    JobNumber,
    PathChoice,
    Placement,
    RowServer,
    Tree,
    TreeId,
    View,
    ViewState,
    Worker,
    wanted_roots,
)
from ..slots.slot_allocator import SlotAllocator, no_room_error
from ..slots.slot_shares import SlotShares, is_settled
from ..switches.switch_session import SwitchSession
from ..tables.outcome import Count, add_counts
from .row_places import can_have_rows, placed_servers, with_row_servers
from .tree_choice import TreeChoice

_LOGGER = logging.getLogger(__name__)
_NEVER_BETWEEN_HOSTS: Final = (PathChoice.SWITCH, PathChoice.TRANSPOSED)
ViewsCallback = Callable[[str, list[View]], None]
"""Called with a switch and the installed views that it concerns."""


class Views:
    """Gives jobs trees, slots and generations, and brings them onto the switches."""

    def __init__(
        self,
        config: ControllerConfig,
        database: Database,
        links: Mapping[str, SwitchSession],
        *,
        fabric: Callable[[JobNumber], Fabric] | None = None,
    ) -> None:
        self._config = config
        self._database = database
        self._links = links
        self._choice = TreeChoice(config, links, fabric)
        self._on_lost_state: ViewsCallback | None = None
        self._on_gone: ViewsCallback | None = None
        for name, link in links.items():
            link.on_lost_state = lambda trees, name=name: self._lost_state(name, trees)
            link.on_gone = lambda name=name: self._gone(name)

    def on_switch_lost_state(self, callback: ViewsCallback) -> None:
        """Have `callback` called when a switch came back without the entries of these views.

        The entries are there again by then; what its slots held is lost.
        """
        self._on_lost_state = callback

    def on_switch_gone(self, callback: ViewsCallback) -> None:
        """Have `callback` called when a switch has been out of reach for `switch_gone_s`."""
        self._on_gone = callback

    def on_switch_ready(self, callback: Callable[[str], None]) -> None:
        """Have `callback` called with a switch that has become ready: jobs may come back to it."""
        for name, link in self._links.items():
            link.on_ready = lambda name=name: callback(name)

    def plan(
        self,
        job: Job,
        members: Iterable[Worker],
        *,
        avoid: Collection[str] = (),
        replacing: View | None = None,
        row_servers: Iterable[RowServer] = (),
    ) -> View:
        """Lease slots for a new view of these members and store it as planned.

        `avoid` names switches and links not to be used. `replacing` is a view that no worker
        sends in any more: its slots may be used again at once. Without room the view runs between
        the hosts if the job allows that; else NoRoomError says what would fit. Row servers get what
        is left. The caller installs the view, or removes it.
        """
        workers = tuple(sorted(members, key=lambda worker: worker.worker_id))
        servers = tuple(row_servers)
        trees, reason = self._arranged(job, workers, avoid, replacing, servers)
        trees, unplaced = placed_servers(job.path, servers, workers, trees)
        view = View(
            generation=self._database.allocate_generation(),
            job_number=job.job_number,
            members=workers,
            trees=self._with_ids(trees),
            straggler=job.straggler,
            reason=reason,
            unplaced_servers=unplaced,
            max_priority=self._granted_priority(job, trees),
            is_transposed=bool(trees) and job.path is PathChoice.TRANSPOSED,
        )
        self._database.store_view(view)
        self._choice.note(view)
        return view

    def _granted_priority(self, job: Job, trees: Iterable[Tree]) -> int:
        """Return the most of what a job asks for that all switches of its trees let through."""
        switches = {node.switch for tree in trees for node in tree.nodes}
        limit = min((self._config.priority_limit(name) for name in switches), default=0)
        return min(job.max_priority, limit)

    def check(self, job: Job, members: Iterable[Worker]) -> None:
        """Raise what `plan` would raise for these members; nothing is leased or stored."""
        self._arranged(job, tuple(members), (), None, ())

    def _arranged(
        self,
        job: Job,
        workers: tuple[Worker, ...],
        avoid: Collection[str],
        replacing: View | None,
        servers: tuple[RowServer, ...],
    ) -> tuple[tuple[Tree, ...], str]:
        """Return trees with slots, none for host allreduce, and why the job gets no better."""
        trees: tuple[Tree, ...] = ()
        reason = "asked for"
        if job.path is not PathChoice.HOST:
            try:
                trees, reason = self._trees(job, workers, avoid, replacing, servers)
            except (NoRoomError, NoTreeError) as exc:
                if job.path in _NEVER_BETWEEN_HOSTS or not _have_peers(workers):
                    raise
                reason = str(exc)
        elif not _have_peers(workers):
            alone = next(w.worker_id for w in workers if not w.peer_port)
            raise InvalidJobError(
                f"job {job.name!r} is to run between the hosts, but worker {alone} has no peer "
                "server; start one, or choose another path"
            )
        return trees, reason

    async def install(self, view: View) -> View:
        """Bring the view's entries onto all its switches; SwitchError takes it off again."""
        view = self._store(view, ViewState.INSTALLED)
        try:
            await asyncio.gather(*(self._links[name].apply() for name in view.switches))
        except SwitchError:
            await self.remove(view)
            raise
        return view

    async def remove(self, view: View) -> View:
        """Keep the view's counters, free its slots, take its entries off its switches.

        A switch that is out of reach loses them when it is back. A view that was never installed
        is forgotten.
        """
        stored = self._database.view(view.generation)
        if stored is None or stored.state is ViewState.REMOVED:
            return stored or view
        if stored.state is ViewState.PLANNED:
            self._database.forget_view(stored.generation)
            return dataclasses.replace(stored, state=ViewState.REMOVED)
        await asyncio.gather(*(self._keep_counts(stored, name) for name in stored.switches))
        removed = self._store(stored, ViewState.REMOVED)
        await asyncio.gather(*(self._clear(name) for name in removed.switches))
        return removed

    async def job_counts(self, job: Job) -> dict[str, dict[wire.Outcome, Count]]:
        """Return a job's counters by switch and outcome, over all its views.

        SwitchError when a switch of an installed view cannot be asked.
        """
        counts = self._database.counts(job.job_number)
        for view in job.live_views:
            if view.state is ViewState.INSTALLED:
                for name in view.switches:
                    for placement in view.placements(name):
                        read = await self._links[name].read_tree_counts(placement.tree.tree_id)
                        add_counts(counts.setdefault(name, {}), read)
        return counts

    def rebalance(self) -> list[Job]:
        """Return the running jobs that should get a new view now; they may change together.

        Besides slots, better trees are a reason: a switch or a link is there again.
        Plan, change over and ask again until nobody is named: what one job gives up becomes free
        when its old view has been removed.
        """
        jobs = self._database.jobs_with_views()
        memory = self._memory()
        for_slots = self._slot_shares(jobs, memory).changes()
        numbers = {job.job_number for job in for_slots}
        return for_slots + [
            job
            for job in jobs
            if job.job_number not in numbers
            and is_settled(job)
            and job.view
            and job.view.is_on_switch
            and self._choice.could_be_better(job, job.view, memory)
        ]

    def placements(self, switch: str) -> list[Placement]:
        """Return what the installed views hold on a switch, oldest first."""
        return [
            placement
            for view in self._database.live_views()
            if view.state is ViewState.INSTALLED
            for placement in view.placements(switch)
        ]

    def _trees(
        self,
        job: Job,
        workers: tuple[Worker, ...],
        avoid: Collection[str],
        replacing: View | None,
        servers: tuple[RowServer, ...],
    ) -> tuple[tuple[Tree, ...], str]:
        """Return trees with slots, and why they have fewer than the job asked for."""
        memory = self._memory(without=replacing).without_rows(job.job_number)
        roots = wanted_roots(servers)
        try:
            shape = self._choice.shape(job, workers, avoid, memory, roots)
        except NoTreeError:
            # For want of slots, or is there no tree at all?
            shape = self._choice.shape(job, workers, avoid, roots=roots)
        jobs = self._database.jobs_with_views()
        if all(other.job_number != job.job_number for other in jobs):
            jobs.append(job)  # its first view
        wanted = job.slots_wanted or self._config.default_slots
        shares = self._slot_shares(jobs, memory)
        count = shares.slots_now(job, shape)
        trees = memory.place(shape, count) if count else None
        if trees is None:
            names = {other.job_number: other.name for other in jobs}
            raise no_room_error(job, shape, wanted, memory, names)
        reason = "" if count >= wanted else f"{count} of {wanted} slots are its share for now"
        if can_have_rows(job.path, workers):
            trees = with_row_servers(trees, servers)
            trees = memory.place_rows(trees, shares.room_for_rows(job, trees))
        return trees, reason

    def _slot_shares(self, jobs: list[Job], memory: SlotAllocator) -> SlotShares:
        off_switch: dict[int, tuple[Tree, ...]] = {}
        for job in jobs:
            view = job.view
            if view is None or view.is_on_switch or job.path is PathChoice.HOST:
                continue
            try:
                off_switch[job.job_number] = self._choice.shape(job, view.members)
            except NoTreeError:
                continue
        return SlotShares(jobs, off_switch, memory, self._config.default_slots)

    def _memory(self, without: View | None = None) -> SlotAllocator:
        left_out = without.generation if without else None
        views = self._database.live_views()
        return SlotAllocator(x for x in views if x.generation != left_out)

    def _with_ids(self, trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
        used: set[int] = set()
        for view in self._database.live_views():
            for tree in view.trees:
                used.add(tree.tree_id)
                for server in tree.row_servers:
                    used.update((server.sums_group_id, server.copies_group_id))

        def next_id() -> int:
            allocated = self._database.allocate_tree_id(used)
            used.add(allocated)
            return allocated

        return tuple(
            dataclasses.replace(
                tree,
                tree_id=next_id(),
                row_servers=tuple(
                    dataclasses.replace(server, sums_group_id=next_id(), copies_group_id=next_id())
                    for server in tree.row_servers
                ),
            )
            for tree in trees
        )

    def _store(self, view: View, state: ViewState) -> View:
        # The stored one knows which members have left meanwhile.
        stored = self._database.view(view.generation) or view
        view = dataclasses.replace(stored, state=state)
        self._database.store_view(view)
        return view

    async def _keep_counts(self, view: View, name: str) -> None:
        try:
            for placement in view.placements(name):
                counts = await self._links[name].read_tree_counts(placement.tree.tree_id)
                self._database.add_counts(view.job_number, name, counts)
        except (KeyError, SwitchError) as exc:
            _LOGGER.warning("job number %d: counters not kept: %s", view.job_number, exc)

    async def _clear(self, name: str) -> None:
        link = self._links.get(name)
        if link is None:
            return
        try:
            await link.apply()
        except SwitchError as exc:
            _LOGGER.warning("switch %s: entries go when it is back: %s", name, exc)

    def _lost_state(self, name: str, trees: frozenset[TreeId]) -> None:
        views = [p.view for p in self.placements(name) if p.tree.tree_id in trees]
        if views and self._on_lost_state is not None:
            self._on_lost_state(name, list(dict.fromkeys(views)))

    def _gone(self, name: str) -> None:
        views = [placement.view for placement in self.placements(name)]
        if views and self._on_gone is not None:
            self._on_gone(name, list(dict.fromkeys(views)))


def _have_peers(workers: tuple[Worker, ...]) -> bool:
    return all(worker.peer_port for worker in workers)
