# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a job's slots and links do now, read from the switches of its trees."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from ..api.operator_api import activity_pb2 as pb
from ..errors import SwitchError
from ..fabric.fabric import Direction, Fabric
from ..fabric.link_meter import ROUND_OUTCOMES, CountedSwitch
from ..fabric.trees.tree_plan import tree_directions
from ..jobs.job import Generation, Tree, TreeNode, View, WorkerId
from ..tables.outcome import Count
from ..tables.slot_state import CopyIndex, SlotCopy
from ..views.view_trees import planned_trees

_R = TypeVar("_R")
_Ports = dict[str, dict[int, tuple[Count, Count]] | str]
"""By switch, (in, out) counters by port; or why they cannot be read."""
GAP_S: Final = 0.05
"""Time between two readings: a round that has waited for so long is stuck."""
MAX_READ: Final = 256
"""Slots of a tree that are looked at on each switch. Reads of more would hold up its P4Runtime."""
MAX_ROUNDS: Final = 64
"""Rounds that wait of which it is read for whom."""


class ReadableSwitch(CountedSwitch, Protocol):
    """A switch with counters and slots; `controller.switches.switch_session.SwitchSession` is."""

    async def find_open_copies(
        self, slots: Iterable[int], generation: Generation
    ) -> list[CopyIndex]:
        """Return the copies of these slots whose round of this generation is open; SwitchError."""
        ...

    async def read_slot_copies(self, copies: Iterable[CopyIndex]) -> list[SlotCopy]:
        """Return what these copies of slots hold; SwitchError."""
        ...


async def read_activity(
    view: View, switches: Mapping[str, ReadableSwitch], fabric: Fabric
) -> pb.JobActivity:
    """Return slots, rounds and bytes of a view now, without those of switches out of reach.

    Rounds that wait, and bytes, are read twice: what has not changed meanwhile is stuck.
    """
    loop = asyncio.get_running_loop()
    places = [(tree, node) for tree in view.trees for node in tree.nodes]
    nodes = await asyncio.gather(
        *(_NodeReading.of(view, tree, node, switches[node.switch]) for tree, node in places)
    )
    ports, began_s = await _ports(view, switches), loop.time()
    await asyncio.sleep(GAP_S)
    await asyncio.gather(*(node.read_again() for node in nodes))
    later, now_s = await _ports(view, switches), loop.time()
    trees = await asyncio.gather(*(_tree(tree, switches[tree.root.switch]) for tree in view.trees))
    by_id = {tree.tree_id: tree for tree in trees}
    for (tree, _), node in zip(places, nodes, strict=True):
        by_id[tree.tree_id].nodes.append(node.message())
    return pb.JobActivity(
        generation=view.generation,
        path="switch" if view.trees else "host",
        time_s=now_s,
        gap_s=now_s - began_s,
        trees=trees,
        links=_links(view, fabric, ports, later),
    )


@dataclass(kw_only=True)
class _NodeReading:
    """The rounds of a tree that wait at one switch."""

    view: View
    node: TreeNode
    switch: ReadableSwitch
    num_read: int
    num_found: int = 0
    first: Sequence[SlotCopy] = ()
    again: Sequence[SlotCopy] = ()
    error: str = ""

    @classmethod
    async def of(
        cls, view: View, tree: Tree, node: TreeNode, switch: ReadableSwitch
    ) -> _NodeReading:
        """Read them for the first time."""
        slots = [node.slot_base + i for i in spread(tree.slot_count, MAX_READ)]
        reading = cls(view=view, node=node, switch=switch, num_read=len(slots))
        found = await _read(switch.find_open_copies(slots, view.generation))
        if isinstance(found, str):
            reading.error, reading.num_read = found, 0
            return reading
        reading.num_found = len(found)
        copies = [found[i] for i in spread(len(found), MAX_ROUNDS)]
        first = await _read(switch.read_slot_copies(copies))
        if isinstance(first, str):
            reading.error = first
        else:
            reading.first = first
        return reading

    async def read_again(self) -> None:
        """Read the same rounds once more."""
        again = await _read(self.switch.read_slot_copies(copy.index for copy in self.first))
        if isinstance(again, str):
            self.error = again
        else:
            self.again = again

    def message(self) -> pb.NodeActivity:
        """Return what was read."""
        rounds = list(open_rounds(self.view, self.node, self.first, self.again))
        scale = self.num_found / len(self.first) if self.first else 0.0
        return pb.NodeActivity(
            switch=self.node.switch,
            read_slots=self.num_read,
            num_open=round(scale * len(rounds)),
            open_rounds=rounds,
            error=self.error,
        )


def spread(number: int, most: int) -> list[int]:
    """Return at most so many of the numbers from 0 on, evenly spread, in order."""
    taken = min(number, most)
    return [i * number // taken for i in range(taken)]


def open_rounds(
    view: View, node: TreeNode, first: Iterable[SlotCopy], again: Iterable[SlotCopy]
) -> Iterator[pb.OpenRound]:
    """Yield the rounds of this view that some children, but not all, have contributed to."""
    unchanged = frozenset(again)
    for copy in first:
        missing = [c for c in node.children if not copy.arrived >> c.child_id & 1]
        if copy.is_open and copy.generation == view.generation and copy.arrived and missing:
            yield pb.OpenRound(
                slot_index=copy.slot - node.slot_base,
                missing_workers=[c.worker_id for c in missing if c.worker_id is not None],
                missing_switches=[c.switch for c in missing if c.switch],
                is_stuck=copy in unchanged,
            )


async def _read(call: Awaitable[_R]) -> _R | str:
    """Return what a call returns, or why it cannot be read."""
    try:
        return await call
    except SwitchError as exc:
        return str(exc)


async def _tree(tree: Tree, root: ReadableSwitch) -> pb.TreeActivity:
    message = pb.TreeActivity(tree_id=tree.tree_id, slot_count=tree.slot_count)
    counts = await _read(root.read_tree_counts(tree.tree_id))
    if isinstance(counts, str):
        message.error = counts
    else:
        message.rounds = sum(counts[o].packets for o in ROUND_OUTCOMES if o in counts)
    return message


async def _ports(view: View, switches: Mapping[str, ReadableSwitch]) -> _Ports:
    found = await asyncio.gather(
        *(_read(switches[name].read_port_counts()) for name in view.switches)
    )
    return dict(zip(view.switches, found, strict=True))


def _links(view: View, fabric: Fabric, before: _Ports, now: _Ports) -> Iterator[pb.LinkActivity]:
    trees = planned_trees(view)
    workers: dict[Direction, set[WorkerId]] = defaultdict(set)
    for node in (node for tree in trees for node in tree.nodes):
        for child in node.children:
            if child.worker_id is not None:
                workers[Direction(node.switch, child.port, is_inward=True)].add(child.worker_id)
    for direction in dict.fromkeys(d for tree in trees for d in tree_directions(tree)):
        sender, receiver = fabric.ends(direction)
        message = pb.LinkActivity(
            sender=sender,
            receiver=receiver,
            rate_bits_per_s=stated_rate(fabric, direction),
            workers=sorted(workers[direction]),
        )
        last, first = (_bytes(ports, direction) for ports in (now, before))
        if isinstance(last, str):
            message.error = last
        else:
            message.bytes = last
            message.recent_bytes = max(last - first, 0) if not isinstance(first, str) else 0
        yield message


def _bytes(counted: _Ports, direction: Direction) -> int | str:
    ports = counted[direction.switch]
    if isinstance(ports, str):
        return ports
    if direction.port not in ports:
        return f"switch {direction.switch} does not count port {direction.port}"
    return ports[direction.port][0 if direction.is_inward else 1].num_bytes


def stated_rate(fabric: Fabric, direction: Direction) -> float:
    """Return the rate of a link that the configuration states, in bits/s; 0 if it states none."""
    link = fabric.link_at(direction.switch, direction.port)
    if link is not None:
        return link.rate_bits_per_s
    hosts = fabric.switches[direction.switch].hosts
    host = next((host for host in hosts if host.port == direction.port), None)
    return 0 if host is None else host.rate_bits_per_s or 0
