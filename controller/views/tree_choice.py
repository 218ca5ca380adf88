# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which trees a view gets: the planner's best over the switches that can be had now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from ..config import ControllerConfig
from ..errors import NoTreeError
from ..fabric.fabric import Fabric
from ..fabric.reachability import SlotDemand
from ..fabric.trees.frame_cost import PLANNED_BYTES, VALUES_PER_PACKET, Traffic
from ..fabric.trees.planner import plan_trees
from ..fabric.trees.transposed import plan_transposed
from ..fabric.trees.tree_plan import TreePlan, predict
from ..jobs.job import Generation, Job, JobNumber, PathChoice, Tree, View, Worker, wanted_roots
from ..slots.slot_allocator import SlotAllocator
from ..switches.switch_session import SwitchSession
from .tree_shape import planned_tree, tree_shape

_WORTH_A_CHANGE: Final = 0.9
"""A job changes to other trees that take less than this part of the time of those that it has."""
_REMEMBERED: Final = 4096
"""Views whose circumstances are remembered."""

_Surroundings = tuple[frozenset[str], frozenset[str]]
"""Switches and links that cannot be used."""


class TreeChoice:
    """Chooses trees, and remembers under which circumstances each view got its own."""

    def __init__(
        self,
        config: ControllerConfig,
        links: Mapping[str, SwitchSession],
        fabric: Callable[[JobNumber], Fabric] | None = None,
    ) -> None:
        """`fabric` returns the fabric as a job sees it now; as configured when None."""
        self._fabric = fabric or _always(Fabric.of(config))
        self._links = links
        self._default_slots = config.default_slots
        self._traffic = Traffic(
            tensor_bytes=PLANNED_BYTES,
            values_per_packet=VALUES_PER_PACKET[config.variant],
            frame_overhead_bytes=config.frame_overhead_bytes,
        )
        self._compared: dict[Generation, _Surroundings] = {}
        """Surroundings in which a view's trees were the best."""

    def shape(
        self,
        job: Job,
        workers: Sequence[Worker],
        avoid: Collection[str] = (),
        memory: SlotAllocator | None = None,
        roots: Sequence[str] = (),
    ) -> tuple[Tree, ...]:
        """Return the best trees without slots; NoTreeError when these workers cannot be joined.

        With `memory`, switches that have too little room are passed by if others will do. Trees are
        rooted at the switches in `roots` where these are among their switches.
        """
        plan = self._plan(job, workers, avoid, memory, roots)
        switches = self._fabric(job.job_number).switches
        return tuple(tree_shape(tree, workers, switches) for tree in plan.trees)

    def note(self, view: View) -> None:
        """Remember what could be used when a view was planned or last compared."""
        fabric = self._fabric(view.job_number)
        self._compared[view.generation] = (self._away() | fabric.down_switches, fabric.down_links)
        while len(self._compared) > _REMEMBERED:
            del self._compared[min(self._compared)]

    def could_be_better(self, job: Job, view: View, memory: SlotAllocator) -> bool:
        """Return whether a switch or link that is back would make a view clearly faster.

        Asked again under the same circumstances, the answer is no: it was acted upon, or refused.
        """
        before = self._compared.get(view.generation)
        self.note(view)
        if before in (None, self._compared[view.generation]):
            return False
        fabric = self._fabric(job.job_number)
        try:
            roots = wanted_roots(view.row_servers)
            plan = self._plan(job, view.members, (), memory, roots)
        except NoTreeError:
            return False
        trees = tuple(planned_tree(tree) for tree in view.trees)
        return plan.seconds < _WORTH_A_CHANGE * predict(fabric, trees, self._traffic).seconds

    def _plan(
        self,
        job: Job,
        workers: Sequence[Worker],
        avoid: Collection[str],
        memory: SlotAllocator | None,
        roots: Sequence[str],
    ) -> TreePlan:
        fabric = self._fabric(job.job_number)
        free: dict[str, int] = {}
        if memory is not None:
            gaps = {name: memory.free(name) for name in fabric.switches}
            free = {name: max(map(len, ranges), default=0) for name, ranges in gaps.items()}
        names = {name for name in avoid if name in fabric.switches}
        usable = fabric.without(
            switches=self._away() | names,
            links={fabric.find_link(name).key for name in set(avoid) - names},
        )
        slots = SlotDemand(wanted=job.slots_wanted or self._default_slots, free=free)
        if job.path is PathChoice.TRANSPOSED:
            return plan_transposed(usable, workers, self._traffic, slots)
        return plan_trees(
            usable, workers, self._traffic, slots=slots, tie_break=job.job_number, roots=roots
        )

    def _away(self) -> frozenset[str]:
        return frozenset(name for name, link in self._links.items() if not link.is_ready)


def _always(fabric: Fabric) -> Callable[[JobNumber], Fabric]:
    return lambda job_number: fabric
