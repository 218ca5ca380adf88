# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Admission: finds slots on switches for a view's trees, or tells why there are none."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...hostlib.slots import wire
from ..errors import NoRoomError
from ..jobs.job import (
    Job,
    JobNumber,
    RowServer,
    Tree,
    TreeNode,
    View,
    rows_in,
    slots_of_rows,
)

FEWEST_SLOTS = 2
"""Fewest slots of a tree by default: a host needs one for exponents and one for values."""


def free_ranges(leased: Iterable[range], num_slots: int) -> list[range]:
    """Return the gaps between used slot ranges of one switch, by base."""
    gaps: list[range] = []
    position = 0
    for lease in sorted(leased, key=lambda lease: lease.start):
        if lease.start > position:
            gaps.append(range(position, lease.start))
        position = max(position, lease.stop)
    if position < num_slots:
        gaps.append(range(position, num_slots))
    return gaps


def split_slots(shares: Sequence[float], total: int) -> list[int]:
    """Split slots among trees by their shares, in whole slots, at least one for each tree."""
    scale = (total - len(shares)) / sum(shares)
    exact = [share * scale for share in shares]
    counts = [int(part) for part in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for index in by_remainder[: total - len(shares) - sum(counts)]:
        counts[index] += 1
    return [count + 1 for count in counts]


def split_rows(servers: Sequence[RowServer], total: int) -> list[int]:
    """Split rows among servers: all get what they want, or as many as any other that gets less."""
    counts = [0] * len(servers)
    by_want = sorted(range(len(servers)), key=lambda i: (servers[i].rows_wanted, i))
    for place, index in enumerate(by_want):
        counts[index] = min(servers[index].rows_wanted, total // (len(servers) - place))
        total -= counts[index]
    return counts


class _Lease(NamedTuple):
    """Slots of a switch that a view holds."""

    slots: range
    job_number: JobNumber
    is_rows: bool = False
    """For hot rows."""


class SlotAllocator:
    """The slots that the views of all jobs hold on every switch."""

    def __init__(self, views: Iterable[View], num_slots: int = wire.NUM_SLOTS) -> None:
        self.num_slots = num_slots
        self._leases: dict[str, list[_Lease]] = {}
        for view in views:
            self.take(view.job_number, view.trees)

    def copy(self) -> SlotAllocator:
        """Return an independent allocator with the same slots in use."""
        memory = SlotAllocator((), self.num_slots)
        for switch, leases in self._leases.items():
            memory._leases[switch] = list(leases)
        return memory

    def without_rows(self, job_number: JobNumber) -> SlotAllocator:
        """Return an allocator in which the hot rows of a job are free, for its next view.

        A row whose slot has newer contents is as if the switch had lost it. A row never changes
        contents of a newer generation.
        """
        memory = SlotAllocator((), self.num_slots)
        for switch, leases in self._leases.items():
            memory._leases[switch] = [
                lease for lease in leases if not (lease.is_rows and lease.job_number == job_number)
            ]
        return memory

    def take(self, job_number: JobNumber, trees: Iterable[Tree]) -> None:
        """Mark the slots of trees that have been placed as used."""
        for tree in trees:
            for node in tree.nodes:
                leases = self._leases.setdefault(node.switch, [])
                slots = range(node.slot_base, node.slot_base + tree.slot_count)
                leases.append(_Lease(slots, job_number))
                if tree.num_rows:
                    rows = range(node.row_base, node.row_base + tree.row_slots)
                    leases.append(_Lease(rows, job_number, is_rows=True))

    def free(self, switch: str) -> list[range]:
        """Return the free ranges of a switch, by base."""
        return free_ranges(self._used(switch), self.num_slots)

    def holders(self, switch: str) -> dict[JobNumber, int]:
        """Return how many slots of a switch each job holds."""
        held: dict[JobNumber, int] = {}
        for slots, job_number in dict.fromkeys(lease[:2] for lease in self._leases.get(switch, [])):
            held[job_number] = held.get(job_number, 0) + len(slots)
        return held

    def place(self, shape: Sequence[Tree], slot_count: int) -> tuple[Tree, ...] | None:
        """Place the trees with `slot_count` slots in all, first fit by switch; None: no room."""
        if slot_count < len(shape):
            return None
        taken: dict[str, list[range]] = {}
        trees: list[Tree] = []
        counts = split_slots([tree.share for tree in shape], slot_count)
        for tree, count in zip(shape, counts, strict=True):
            nodes: list[TreeNode] = []
            for node in tree.nodes:
                used = self._used(node.switch) + taken.get(node.switch, [])
                gaps = free_ranges(used, self.num_slots)
                base = next((gap.start for gap in gaps if len(gap) >= count), None)
                if base is None:
                    return None
                taken.setdefault(node.switch, []).append(range(base, base + count))
                nodes.append(dataclasses.replace(node, slot_base=base))
            trees.append(dataclasses.replace(tree, slot_count=count, nodes=tuple(nodes)))
        return tuple(trees)

    def place_rows(self, trees: Sequence[Tree], room: Mapping[str, int]) -> tuple[Tree, ...]:
        """Give the row servers of placed trees as many rows as fit, at the end of each switch.

        `room`: most slots of each switch for them.
        """
        used: dict[str, list[range]] = {}
        left = dict(room)
        waiting: dict[str, int] = {}
        """Rows of the trees that have none yet, by switch."""
        for tree in trees:
            for node in tree.nodes:
                slots = range(node.slot_base, node.slot_base + tree.slot_count)
                used.setdefault(node.switch, self._used(node.switch)).append(slots)
                waiting[node.switch] = waiting.get(node.switch, 0) + _rows_wanted(tree)
        placed: list[Tree] = []
        for tree in trees:
            wanted = _rows_wanted(tree)
            num_rows = wanted
            for node in tree.nodes if wanted else ():
                gaps = free_ranges(used[node.switch], self.num_slots)
                share = left[node.switch] * wanted // waiting[node.switch]
                waiting[node.switch] -= wanted
                num_rows = min(
                    num_rows, rows_in(min(max(map(len, gaps), default=0), max(share, 0)))
                )
            size = slots_of_rows(num_rows)
            nodes: list[TreeNode] = []
            for node in tree.nodes:
                gaps = free_ranges(used[node.switch], self.num_slots)
                base = max((gap.stop - size for gap in gaps if len(gap) >= size), default=0)
                used[node.switch].append(range(base, base + size))
                left[node.switch] -= size
                nodes.append(dataclasses.replace(node, row_base=base if size else 0))
            placed.append(
                dataclasses.replace(
                    tree, nodes=tuple(nodes), row_servers=_with_rows(tree, num_rows)
                )
            )
        return tuple(placed)

    def _used(self, switch: str) -> list[range]:
        return [lease.slots for lease in self._leases.get(switch, [])]

    def most_slots(self, shape: Sequence[Tree], wanted: int) -> int:
        """Return how many of the wanted slots the trees could get in all, 0 for none."""
        fits, fails = 0, wanted + 1
        while fails - fits > 1:
            middle = (fits + fails) // 2
            if self.place(shape, middle) is None:
                fails = middle
            else:
                fits = middle
        return fits


def _rows_wanted(tree: Tree) -> int:
    return sum(server.rows_wanted for server in tree.row_servers)


def _with_rows(tree: Tree, num_rows: int) -> tuple[RowServer, ...]:
    """Return a tree's servers with so many rows in all; those without any keep only a reason."""
    servers: list[RowServer] = []
    first = 0
    for server, count in zip(tree.row_servers, split_rows(tree.row_servers, num_rows), strict=True):
        reason = ""
        if count < server.rows_wanted:
            reason = f"{count} of {server.rows_wanted} rows fit beside the slots of all jobs"
        servers.append(dataclasses.replace(server, first_row=first, num_rows=count, reason=reason))
        first += count
    return tuple(servers)


def no_room_error(
    job: Job,
    shape: Sequence[Tree],
    wanted: int,
    memory: SlotAllocator,
    names: Mapping[JobNumber, str],
) -> NoRoomError:
    """Return a refusal that names the free slots of each switch, their holders, and what fits."""
    if wanted > memory.num_slots * len(shape):
        return NoRoomError(
            f"job {job.name!r} wants {wanted} slots, but a switch has only {memory.num_slots}; ask "
            f"for at most {memory.num_slots}"
        )
    most = memory.most_slots(shape, wanted)
    advice = f"{most} slots would fit" if most else "no slot is free"
    switches = dict.fromkeys(node.switch for tree in shape for node in tree.nodes)
    details = "; ".join(_describe(switch, memory, names) for switch in switches)
    return NoRoomError(
        f"job {job.name!r} wants {wanted} slots: {advice}. {details}. Ask for fewer slots, let it "
        "run between the hosts (path 'auto'), or wait for a job to end"
    )


def _describe(switch: str, memory: SlotAllocator, names: Mapping[JobNumber, str]) -> str:
    gaps = memory.free(switch)
    free = sum(len(gap) for gap in gaps)
    largest = max((len(gap) for gap in gaps), default=0)
    in_one_piece = "" if largest == free else f", {largest} in one piece"
    holders = ", ".join(
        f"{names.get(number, f'job number {number}')} ({count})"
        for number, count in memory.holders(switch).items()
    )
    return (
        f"switch {switch}: {free} of {memory.num_slots} free{in_one_piece}, "
        f"held by {holders or 'no job'}"
    )
