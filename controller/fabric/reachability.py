# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which switches a job's trees may use, and which workers no tree can join."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..errors import NoTreeError
from .fabric import Attachment, Fabric, Hop
from .trees.tree_growth import Graph, joined_switches
from .trees.tree_plan import MAX_CHILDREN


@dataclass(frozen=True, kw_only=True)
class SlotDemand:
    """The slots that a job wants on each switch, and those that the switches have."""

    wanted: int = 1
    free: Mapping[str, int] = field(default_factory=dict[str, int])
    """Largest free range by switch; switches that are not in it have room for all."""


NO_DEMAND: Final = SlotDemand()


def planning_graph(
    fabric: Fabric, attachments: Sequence[Attachment], slots: SlotDemand, tie_break: int
) -> Graph:
    """Return the switches that trees may use: only those with room for all slots, if they suffice.

    Raises NoTreeError when the workers' switches cannot all be joined.
    """
    workers = Counter(worker.switch for worker in sorted(attachments, key=lambda w: w.worker_id))
    if not workers:
        raise ValueError("a job without workers needs no tree")
    free = slots.free
    for switch in workers:
        _check_switch(fabric, attachments, switch, workers[switch], free)
    # A switch on the path with less room than the workers' own switches would limit the slots.
    room = min((free.get(switch, slots.wanted) for switch in workers), default=slots.wanted)
    wanted = max(1, min(slots.wanted, room))
    while True:
        graph = _graph(fabric, workers, free, wanted, tie_break)
        reached = set(joined_switches(graph, next(iter(workers))))
        if reached.issuperset(workers):
            return graph
        if wanted == 1:
            raise _partition(fabric, attachments, graph)
        wanted //= 2


def _check_switch(
    fabric: Fabric,
    attachments: Sequence[Attachment],
    switch: str,
    num_workers: int,
    free: Mapping[str, int],
) -> None:
    """Raise NoTreeError unless a switch with workers can be in a tree."""
    here = tuple(sorted(w.worker_id for w in attachments if w.switch == switch))
    reason = ""
    if switch not in fabric.switches:
        reason = "which is not configured"
    elif switch in fabric.down_switches:
        reason = "which is down or to be avoided"
    elif not fabric.switches[switch].aggregates:
        reason = "which does not aggregate"
    elif free.get(switch, 1) < 1:
        reason = "which has no slot free"
    elif num_workers > MAX_CHILDREN:
        reason = f"which takes at most {MAX_CHILDREN} of them"
    if reason:
        raise NoTreeError(
            f"{_named(here)} at switch {switch}, {reason}; no tree can join them", workers=here
        )


def _graph(
    fabric: Fabric, workers: Mapping[str, int], free: Mapping[str, int], wanted: int, tie_break: int
) -> Graph:
    """Return the switches that aggregate and have `wanted` slots, in the order of preference."""
    usable = {
        switch
        for switch in fabric.hops
        if fabric.switches[switch].aggregates and free.get(switch, wanted) >= wanted
    }
    names = sorted(usable)
    turn = tie_break % len(names) if names else 0
    order = {name: place for place, name in enumerate(names[turn:] + names[:turn])}
    hops: dict[str, tuple[Hop, ...]] = {
        switch: tuple(
            sorted(
                (hop for hop in fabric.hops[switch] if hop.switch in usable),
                key=lambda hop: (order[hop.switch], hop.port),
            )
        )
        for switch in sorted(usable, key=order.__getitem__)
    }
    return Graph(hops, workers)


def _partition(fabric: Fabric, attachments: Sequence[Attachment], graph: Graph) -> NoTreeError:
    """Return the error that names the workers on the smaller sides of a partition."""
    parts: list[tuple[int, ...]] = []
    seen: set[str] = set()
    by_switch: dict[str, list[int]] = defaultdict(list)
    for worker in attachments:
        by_switch[worker.switch].append(worker.worker_id)
    for switch in graph.workers:
        if switch not in seen:
            part = joined_switches(graph, switch)
            seen.update(part)
            parts.append(tuple(sorted(w for name in part for w in by_switch.get(name, ()))))
    largest = max(parts, key=len)
    lost = [part for part in parts if part != largest]
    down = sorted(fabric.down_switches) + sorted(fabric.down_links)
    because = f"; down or to be avoided: {', '.join(down)}" if down else ""
    return NoTreeError(
        f"no tree of aggregating switches with free slots joins {_named(largest)} with "
        f"{' or '.join(_named(part) for part in lost)}{because}",
        workers=tuple(sorted(worker for part in lost for worker in part)),
    )


def _named(workers: Sequence[int]) -> str:
    """Return worker ids in words, shortened if there are many."""
    if len(workers) == 1:
        return f"worker {workers[0]}"
    shown = ", ".join(map(str, workers[:8]))
    return f"workers {shown}" + (f" and {len(workers) - 8} more" if len(workers) > 8 else "")
